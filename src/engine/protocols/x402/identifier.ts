/**
 * The payment-identifier extension: a client names its purchase, so that it may ask for the same one again with another
 * payment. Offered, never demanded.
 */
export const IDENTIFIER = 'payment-identifier'

/** What a challenge says of it. The form of an id is the specification’s; every byte here is sent with every 402. */
export const IDENTIFIER_EXTENSION = { info: { required: false }, schema: { type: 'object' } }

/** The extension as a payment carries it, with an id or without. */
export const identifierSchema = {
  type: ['object', 'null'],
  properties: {
    info: {
      type: ['object', 'null'],
      properties: { id: { type: 'string', pattern: '^[A-Za-z0-9_-]{16,128}$' } },
    },
  },
}

export const IDENTIFIER_FORM = `extensions["${IDENTIFIER}"].info.id is not 16 to 128 letters, digits, - or _`

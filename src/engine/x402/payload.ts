import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { isJsonObject, parseJson, type JsonObject } from '../base/json.ts'
import type { Detection } from '../payment/payment.ts'
import type { Accepted } from './requirements.ts'

/** A payment, decoded. `payload` belongs to the scheme that `accepted` names. */
export interface PaymentPayload<Signed = JsonObject> {
  readonly x402Version: 2
  readonly resource?: { readonly url: string } | null
  readonly accepted: Accepted
  readonly payload: Signed
  readonly extensions?: Extensions | null
}

/** Extensions of a payment: added by the client, or copied from the challenge. */
interface Extensions {
  readonly [IDENTIFIER]?: { readonly info?: { readonly id?: string } | null } | null
  readonly [name: string]: unknown
}

/**
 * The payment-identifier extension: a client names its purchase, so that it may ask for the same one again with another
 * payment. Offered, never demanded.
 */
export const IDENTIFIER = 'payment-identifier'

/** The extension in a challenge. The specification defines the form of an id; every byte is sent with every 402. */
export const IDENTIFIER_EXTENSION = { info: { required: false }, schema: {} }

/** The extension as a payment carries it, with an id or without. */
const identifierSchema = {
  type: ['object', 'null'],
  properties: {
    info: {
      type: ['object', 'null'],
      properties: { id: { type: 'string', pattern: '^[A-Za-z0-9_-]{16,128}$' } },
    },
  },
}

const IDENTIFIER_FORM = `extensions["${IDENTIFIER}"].info.id is not 16 to 128 letters, digits, - or _`

const schema = {
  type: 'object',
  required: ['x402Version', 'accepted', 'payload'],
  properties: {
    x402Version: { const: 2 },
    resource: {
      type: ['object', 'null'],
      required: ['url'],
      properties: { url: { type: 'string', maxLength: 4096 } },
    },
    accepted: {
      type: 'object',
      required: ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'],
      properties: {
        scheme: { type: 'string' },
        network: { type: 'string' },
        amount: { type: 'string' },
        asset: { type: 'string' },
        payTo: { type: 'string' },
        maxTimeoutSeconds: { type: 'number' },
        extra: { type: ['object', 'null'] },
      },
    },
    payload: { type: 'object' },
    extensions: { type: ['object', 'null'], properties: { [IDENTIFIER]: identifierSchema } },
  },
}

const validate = new Ajv2020({ allowUnionTypes: true, validateSchema: false }).compile<PaymentPayload>(schema)

/** Longest header that is looked at; a real one is below 4 KB. */
const LONGEST = 32_768
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

export type Decoded = { readonly kind: 'payload'; readonly payload: PaymentPayload } | Malformed

export type Malformed = Extract<Detection, { readonly kind: 'malformed' }>

/** Reads the text of a header: standard base64 (padding optional) of a JSON object in UTF-8, which `read` is given. */
export function readBase64<T>(header: string, read: (payment: JsonObject) => T): T | Malformed {
  const text = header.trim()
  if (text.length > LONGEST || !BASE64.test(text)) return malformed('the text is not standard base64')
  const value = parseJson(Buffer.from(text, 'base64').toString('utf8'))
  return isJsonObject(value) ? read(value) : malformed('the text is not the base64 of a JSON object')
}

/** Reads a payment that came as JSON. */
export function readPayload(value: unknown): Decoded {
  if (!isJsonObject(value)) return malformed('the payment is not a JSON object')
  if (value['x402Version'] !== 2) return wrongVersion(value['x402Version'])
  if (validate(value)) {
    const { accepted } = value
    return {
      kind: 'payload',
      payload: { ...value, accepted: { ...accepted, extra: accepted.extra ?? null } },
    }
  }
  const [first] = validate.errors ?? []
  if (first?.instancePath.startsWith(`/extensions/${IDENTIFIER}`) && first.keyword !== 'required')
    return malformed(IDENTIFIER_FORM)
  return malformed(faultOf(first, '', 'x402 v2'))
}

/** What the first error of a schema says of the value at `at`. */
export function faultOf(first: ErrorObject | undefined, at: string, asker: string): string {
  const missing: unknown = first?.keyword === 'required' ? first.params['missingProperty'] : undefined
  const place = at + (first?.instancePath ?? '')
  return typeof missing === 'string'
    ? `${place}/${missing} is missing`
    : `${place} is not what ${asker} asks for`
}

function wrongVersion(version: unknown): Decoded {
  if (typeof version !== 'number') return malformed('x402Version must be the number 2')
  return {
    kind: 'malformed',
    code: 'invalid_x402_version',
    detail: `x402Version ${version} is not supported. ${VERSION_2}`,
  }
}

/** What a client of another version has to send instead. */
export const VERSION_2 =
  'Send a JSON object with "x402Version": 2, one offer copied unchanged into "accepted", and "payload": ' +
  'its base64 in the header PAYMENT-SIGNATURE, or the object in _meta["x402/payment"] of a call of a tool. ' +
  'The offers are in the response to an unpaid call; over HTTP, in its PAYMENT-REQUIRED header. ' +
  'Clients of version 1 send X-PAYMENT, where the body of that response offers it.'

export function malformed(detail: string): Malformed {
  return { kind: 'malformed', code: 'invalid_payload', detail }
}

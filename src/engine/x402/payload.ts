import { Ajv2020 } from 'ajv/dist/2020.js'
import { toChecksum, type Address } from '../base/address.ts'
import { isJsonObject, parseJson, type JsonObject } from '../base/json.ts'
import type { Detection } from '../payment/protocol.ts'
import type { Requirements } from './requirements.ts'

/** EIP-3009 TransferWithAuthorization as x402 carries it: every number a decimal string, addresses spelt by EIP-55. */
export interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: `0x${string}`
}

/** PAYMENT-SIGNATURE, decoded: scheme exact on EVM with EIP-3009. */
export interface PaymentPayload {
  readonly x402Version: 2
  readonly resource?: { readonly url: string } | null
  readonly accepted: Requirements
  readonly payload: { readonly signature: `0x${string}`; readonly authorization: Authorization }
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

const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' }
/** Hexadecimal and signs are refused, for the token's contract and we must read the same number. */
const decimal = { type: 'string', pattern: '^(0|[1-9][0-9]{0,77})$' }

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
    payload: {
      type: 'object',
      required: ['signature', 'authorization'],
      properties: {
        signature: { type: 'string', pattern: '^0x([0-9a-fA-F]{2}){65,2048}$' },
        authorization: {
          type: 'object',
          required: ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'],
          properties: {
            from: address,
            to: address,
            value: decimal,
            validAfter: decimal,
            validBefore: decimal,
            nonce: { type: 'string', pattern: '^0x[0-9a-fA-F]{64}$' },
          },
        },
      },
    },
    extensions: { type: ['object', 'null'], properties: { [IDENTIFIER]: identifierSchema } },
  },
}

const validate = new Ajv2020({ allowUnionTypes: true, validateSchema: false }).compile<PaymentPayload>(schema)

/** Longest header that is looked at; a real one is below 4 KB. */
const LONGEST = 32_768
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

export type Decoded =
  | { readonly kind: 'payload'; readonly payload: PaymentPayload }
  | Extract<Detection, { readonly kind: 'malformed' }>

/** Reads a PAYMENT-SIGNATURE header: standard base64 (padding optional) of a UTF-8 JSON PaymentPayload. */
export function decodePayload(header: string): Decoded {
  if (header.length > LONGEST || !BASE64.test(header)) return malformed('the text is not standard base64')
  const value = parseJson(Buffer.from(header, 'base64').toString('utf8'))
  return isJsonObject(value) ? readPayload(value) : malformed('the text is not the base64 of a JSON object')
}

/** Reads a payment that came as JSON. */
export function readPayload(value: unknown): Decoded {
  if (!isJsonObject(value)) return malformed('the payment is not a JSON object')
  if (value['x402Version'] !== 2) return wrongVersion(value['x402Version'])
  if (validate(value))
    return fitsToken(value) ? { kind: 'payload', payload: spell(value) } : malformed(TOO_LARGE)
  const [first] = validate.errors ?? []
  const missing: unknown = first?.keyword === 'required' ? first.params['missingProperty'] : undefined
  const place = first?.instancePath ?? ''
  if (typeof missing === 'string') return malformed(`${place}/${missing} is missing`)
  if (place.startsWith(`/extensions/${IDENTIFIER}`)) return malformed(IDENTIFIER_FORM)
  return malformed(`${place} is not what x402 v2 (scheme exact, EIP-3009) asks for`)
}

const LARGEST = 2n ** 256n - 1n
const TOO_LARGE = '/payload/authorization has a number that is no uint256'

function fitsToken({ payload: { authorization } }: PaymentPayload): boolean {
  const { value, validAfter, validBefore } = authorization
  return [value, validAfter, validBefore].every((number) => BigInt(number) <= LARGEST)
}

/** A wrong letter case changes no address and no signature, and yet viem refuses to encode it. */
function spell(payload: PaymentPayload): PaymentPayload {
  const { signature, authorization } = payload.payload
  const { from, to } = authorization
  const spelt = { ...authorization, from: toChecksum(from), to: toChecksum(to) }
  return { ...payload, payload: { signature, authorization: spelt } }
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
  'The offers are in the response to an unpaid call; over HTTP, in its PAYMENT-REQUIRED header.'

function malformed(detail: string): Decoded {
  return { kind: 'malformed', code: 'invalid_payload', detail }
}

/** The listing data for a facilitator: the members of the 402 that a payment repeats. */
export interface Listing {
  /** Id of the operation. */
  readonly operation: string
  /** Without its URL. */
  readonly resource: JsonObject
  readonly extensions: JsonObject
}

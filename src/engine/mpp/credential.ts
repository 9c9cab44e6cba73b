import { Ajv2020 } from 'ajv/dist/2020.js'
import { isJsonObject, parseJson } from '../base/json.ts'
import { once } from '../base/once.ts'
import type { Detection } from '../payment/payment.ts'
import { encode, INTENT, METHOD, type BoundParameters } from './mpp-challenge.ts'

/** The challenge as the client gives it back; `request` and `opaque` stay the texts they were. */
interface EchoedChallenge extends BoundParameters {
  readonly id: string
}

/** A payment of the Tempo method in pull mode: a signed transaction for us to broadcast. */
export interface Credential {
  readonly challenge: EchoedChallenge
  /** RLP of the transaction. */
  readonly transaction: `0x${string}`
  /** The whole credential in base64url, as received. */
  readonly token: string
}

type Refused = Exclude<Detection, { readonly kind: 'payment' | 'none' }>

export type FoundCredential =
  { readonly kind: 'none' } | Refused | { readonly kind: 'credential'; readonly credential: Credential }

/** Longest header that is looked at; a real one has 1.5 KB, and servers must take 4. */
const LONGEST = 32_768
const TOKEN = /^payment +([A-Za-z0-9_-]+)$/i

/** Finds the credential in an Authorization header; other schemes are ignored. */
export function findCredential(header: string | undefined): FoundCredential {
  if (header === undefined) return { kind: 'none' }
  const credentials = header.split(',').flatMap((part) => {
    const text = part.trim()
    return /^payment(?:\s|$)/i.test(text) ? [text] : []
  })
  const [text] = credentials
  if (text === undefined) return { kind: 'none' }
  if (credentials.length > 1) {
    return {
      kind: 'malformed',
      code: 'multiple_payments',
      detail: 'the request carries more than one Payment credential',
    }
  }
  const token = text.length > LONGEST ? undefined : TOKEN.exec(text)?.[1]
  return token === undefined ? unreadable('it is not base64url without padding') : decode(token)
}

/** Longer values are not from our challenges and are not kept. */
const text = { type: 'string', maxLength: 8192 }

const schema = {
  type: 'object',
  required: ['id', 'realm', 'method', 'intent', 'request'],
  properties: {
    id: { type: 'string', pattern: '^[!-~]{1,128}$' },
    realm: text,
    method: text,
    intent: text,
    request: text,
    expires: text,
    digest: text,
    opaque: text,
  },
}

const echoForm = once(() => new Ajv2020().compile<EchoedChallenge>(schema))

function decode(token: string): FoundCredential {
  return read(parseJson(Buffer.from(token, 'base64url').toString('utf8')), token)
}

/** Reads a credential from JSON, in which the request of the challenge is JSON too. */
export function readCredential(value: unknown): FoundCredential {
  const challenge = isJsonObject(value) ? value['challenge'] : undefined
  if (!isJsonObject(value) || !isJsonObject(challenge))
    return unreadable('it is not a JSON object with a challenge')
  const { request } = challenge
  const echo = isJsonObject(request) ? { ...challenge, request: encode(request) } : challenge
  const credential = { ...value, challenge: echo }
  return read(credential, Buffer.from(JSON.stringify(credential), 'utf8').toString('base64url'))
}

function read(value: unknown, token: string): FoundCredential {
  if (!isJsonObject(value)) return unreadable('it does not hold a JSON object')
  const { challenge, payload } = value
  if (!echoForm()(challenge)) return unreadable('challenge is not the echo of a challenge')
  if (challenge.method !== METHOD || challenge.intent !== INTENT) {
    return {
      kind: 'malformed',
      code: 'method_unsupported',
      detail: `payments are taken by method ${METHOD}, intent ${INTENT}`,
    }
  }
  if (!isJsonObject(payload)) return unreadable('payload is missing')
  return takePayload(challenge, payload, token)
}

const TRANSACTION = /^0x(?:[0-9a-fA-F]{2}){1,8192}$/

function takePayload(
  challenge: EchoedChallenge,
  { type, signature }: Readonly<Record<string, unknown>>,
  token: string,
): FoundCredential {
  switch (type) {
    case 'transaction':
      if (typeof signature !== 'string' || !TRANSACTION.test(signature))
        return unreadable('payload.signature is not a transaction in hexadecimal digits')
      return {
        kind: 'credential',
        credential: { challenge, transaction: `0x${signature.slice(2).toLowerCase()}`, token },
      }
    // What was broadcast before the work cannot be left unpaid when the work fails.
    case 'hash':
    case 'proof':
      return {
        kind: 'refused',
        code: 'verification_failed',
        detail: 'send the signed transaction (payload type "transaction"): it is broadcast here',
      }
    default:
      return unreadable('payload.type is not "transaction"')
  }
}

function unreadable(detail: string): Refused {
  return { kind: 'refused', code: 'malformed_credential', detail: `the credential cannot be read: ${detail}` }
}

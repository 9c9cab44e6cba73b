import type { Json, JsonObject } from '../../engine/base/json.ts'
import { listAt, readObject } from '../json-access.ts'

/** A 402 as it was received. */
export interface PaymentRequired {
  /** Key of the route in the catalog. */
  readonly key: string
  readonly headers: Pick<Headers, 'get'>
  readonly body: string
}

/** What a 402 offers by each protocol; undefined where it does not offer it. */
interface Offers {
  /** `accepts` of PAYMENT-REQUIRED. */
  readonly x402: readonly Json[] | undefined
  /** `request` of the Payment challenge in WWW-Authenticate. */
  readonly mpp: JsonObject | undefined
}

export function offersOf({ headers }: PaymentRequired): Offers {
  const required = decode(headers.get('payment-required') ?? undefined)
  const request = /\brequest="([\w-]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1]
  return { x402: required && listAt(required, 'accepts'), mpp: decode(request) }
}

/** base64 or base64url of a JSON object. */
function decode(text: string | undefined): JsonObject | undefined {
  return text === undefined ? undefined : readObject(Buffer.from(text, 'base64').toString('utf8'))
}

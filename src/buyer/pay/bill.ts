import type { Json } from '../../engine/base/json.ts'
import type { Micros } from '../../engine/base/money.ts'
import type { Offer } from '../protocols/paying-protocol.ts'

/** The result of a call, and its cost. */
export interface Bill {
  readonly exit: number
  readonly status: number
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly offer?: Offer
  /** What was charged; while that is not known, the most that may have been. Undefined when nothing was signed. */
  readonly amount?: Micros
  /** What a metered amount consists of, as the seller has written it. */
  readonly usage?: Json | undefined
  readonly transaction?: string | undefined
  /** Name of the payment at the seller’s. */
  readonly payment?: string | undefined
  /** Signed receipts of the answer, by their form. */
  readonly receipts?: Readonly<Record<string, string>> | undefined
  readonly body: Json
  /** Content of a 200, unchanged. */
  readonly content?: { readonly bytes: Buffer; readonly mediaType: string }
  readonly note?: string
}

import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../base/json.ts'
import type { Micros } from '../base/money.ts'
import type { Endpoint } from '../catalog/catalog.ts'
import type { BlockLook } from '../chains/evm/finality.ts'
import type { BlockReference, PaymentRecord } from '../ledger/payment-record.ts'
import type { Challenge } from './challenge.ts'
import type { Detection, PaymentProtocol, ToolReceipts } from './payment.ts'
import type { Journal, Settlement } from './settlement.ts'

/** A way to be paid. The engine holds a visible list of them; each knows its own headers only. */
export interface Protocol extends PaymentProtocol {
  /** The payers that a text of an operator may name, as `Verification` spells them: one for each kind of network. */
  payerKeys(text: string): readonly string[]
  /** Finds this protocol’s payment in a request: reads, never trusts. */
  detect(headers: IncomingHttpHeaders): Detection
  readonly tools: ToolBinding
  /** Whether a payload may buy nothing, as one that closes a channel: clients send it by GET, whatever a route’s method. */
  readonly takesActions?: boolean
  /**
   * The 402 of this endpoint in this protocol; undefined when nothing can be settled. Built once per revision, and
   * for a computed price once for each `amount`.
   */
  challenge(endpoint: Endpoint, amount?: Micros): Challenge | undefined
  /** Sends again what is recorded for a payment that was charged: the same bytes, by any number of processes at once. */
  resend?(record: PaymentRecord): Promise<void>
  /** Settles a payment again that a reorganization has undone, when what was sent for it can never be mined any more. */
  resettle?(record: PaymentRecord, journal: Journal): Promise<Settlement>
  /** Asks a network which of these blocks of settled payments are final, and which were undone. */
  lookAtBlocks(
    place: Pick<PaymentRecord, 'scheme' | 'network'>,
    blocks: readonly BlockReference[],
  ): Promise<BlockLook>
  /** Work that no request waits for: called every few seconds, and never twice at once in one process. */
  background?(): Promise<void>
  /** The process stops: tells others what they must know of it. */
  leave?(): Promise<void>
}

/** The protocol in calls of MCP tools, which have no headers: it uses members of its own in `_meta`. */
export interface ToolBinding extends ToolReceipts {
  /** Capabilities that a server with this protocol announces. */
  readonly capabilities: Capabilities
  /** Finds this protocol’s payment in the `_meta` of a call: reads, never trusts. */
  detect(meta: JsonObject): Detection
}

/** Members of MCP's server capabilities. */
export interface Capabilities {
  readonly extensions?: Record<string, Record<string, never>>
  /** Payment scheme, transport MCP. */
  readonly experimental?: Record<string, { methods: Record<string, { intents: string[] }> }>
}

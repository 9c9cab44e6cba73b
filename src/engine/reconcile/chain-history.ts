import type { RpcTransport } from '../base/runtime.ts'
import type { Clock } from '../base/poll.ts'
import type { BlockRange } from '../chains/evm/event-log.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Incoming, OnchainStatus } from '../payment/reconcile-source.ts'

/** What one chain shows of the payments to some addresses. Everything throws `RpcUnavailableError`. */
export interface ChainHistory {
  /** The blocks that are read; undefined where a chain is searched by time. */
  readonly span: BlockRange | undefined
  /** What has come in, page by page. */
  incoming(): AsyncGenerator<HistoryPage>
  status(record: PaymentRecord): Promise<OnchainStatus>
  /** Whether a transaction carries out the refund of a payment. */
  showsRefund(record: PaymentRecord, transaction: string): Promise<boolean>
}

/** What it takes to read the history of any chain. */
export interface HistorySettings extends Clock {
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly caller: RpcTransport
}

interface HistoryPage {
  readonly incoming: readonly Incoming[]
  /** How far the search is, for the operator. */
  readonly read: string
}

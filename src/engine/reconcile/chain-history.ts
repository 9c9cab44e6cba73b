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

interface HistoryPage {
  readonly incoming: readonly Incoming[]
  /** How far the search is, for the operator. */
  readonly read: string
}

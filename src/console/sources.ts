import type { Service } from '../engine/http/service.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import type { ListingReport } from '../engine/payment/listing-report.ts'
import type { NetworkHealth } from '../engine/payment/network-health.ts'
import type { RefundResult } from '../engine/refunds/refund-result.ts'
import type { ChannelBalance } from '../engine/x402/batch-settlement-evm/channel-balances.ts'
import type { UsageStore } from '../engine/usage/usage-store.ts'

/** What the console reads. It writes nothing but a refund that its operator has confirmed. */
export interface ConsoleSources {
  readonly ledger: Ledger
  readonly service: Pick<Service, 'revision' | 'refused'>
  readonly usage: Pick<UsageStore, 'read'>
  readonly networks: () => Promise<readonly NetworkHealth[]>
  readonly listings: () => Promise<readonly ListingReport[]>
  /** The channels of buyers, as of the last seconds. */
  readonly channels: () => Promise<readonly ChannelBalance[]>
  readonly now: () => number
  /** Whether the money is play money on local chains. */
  readonly sandbox: boolean
  /** Address of the service. */
  readonly baseUrl: string
  readonly version: string
  /** The kinds of the stores and their addresses, for people. */
  readonly titles: { readonly ledger: string; readonly cache: string }
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
  /** The operator's own wallets, as records spell payers. */
  readonly ownPayers: () => ReadonlySet<string>
  /** The payers that an address may mean, as records spell them. */
  readonly payerKeys: (text: string) => readonly string[]
  /** What the catalog file says besides what is served. */
  readonly catalogReport: () => CatalogReport
  /** Undefined without the key of an account that refunds are sent from. */
  readonly refund: ((record: PaymentRecord) => Promise<RefundResult>) | undefined
}

export interface CatalogReport {
  readonly file: string
  readonly warnings: readonly { readonly message: string; readonly line: number }[]
  /** Compared with the revision that was served before; undefined when none is known. */
  readonly difference:
    | {
        readonly before: string
        readonly changes: readonly {
          readonly kind: 'added' | 'removed' | 'changed'
          readonly name: string
          readonly price: string
          readonly parameters: readonly string[]
        }[]
        readonly lines: readonly string[]
        readonly alarms: readonly string[]
      }
    | undefined
}

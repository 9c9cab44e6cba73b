import type { PaymentRecord, Receipt } from '../../../src/engine/ledger/payment-record.ts'
import type { Hex } from '../../support/payment.ts'
import type { ChaosRoute } from './routes.ts'
import type { Broadcast, Reorganization } from './reorganization.ts'

/** A chain, the clients of a protocol, and a way to match charges on the chain with signed payments. */
export interface PaymentMethod {
  /** What can be bought by it. */
  readonly routes: readonly ChaosRoute[]
  /** Its entry below `payments` in the catalog. */
  readonly catalogYaml: string
  /** Environment variables of a server that accepts it. */
  readonly env: Readonly<Record<string, string>>
  /** Request header that carries a payment. */
  readonly header: string
  /** Key of a new wallet with more money than it will need. */
  wallet(): Promise<Hex>
  /** The client as it comes from the registry; `transport` carries its requests. */
  client(key: Hex, transport: typeof fetch): typeof fetch
  /**
   * Signs one payment for the 402 of a request; resolves to the header’s value. Undefined where the client itself signs
   * the same payment again until it is answered.
   */
  readonly sign: ((url: string, key: Hex, transport: typeof fetch) => Promise<string>) | undefined
  /** The payment reference, which the chain shows for this payment only: from its header, and from its key in the ledger. */
  readonly referenceOf: (header: string) => string
  readonly referenceOfKey: (key: string) => string
  /** Every transfer to the seller; `records`: what the ledger has, for charges that only their sum shows on the chain. */
  charges(records: readonly PaymentRecord[]): Promise<Charge[]>
  /** Transaction of the receipt in an answer, or in the data of its last event. */
  readonly receiptOf: (answer: Response, event: string | undefined) => string | undefined
  /** The same of a receipt in the ledger. */
  readonly transactionOf: (receipt: Receipt) => string
  /** When a transaction was sent to the chain; none where that is not noted. */
  readonly broadcastsOf: (transaction: string) => readonly Broadcast[]
  /** What the node says of a transaction in the end. */
  readonly standingOf: (transaction: string) => Promise<string>
  /** Advances the chain once; called repeatedly during the run. */
  tick(): Promise<void>
  /** Replaces the newest blocks of the chain; undefined when there is no transaction in them. */
  reorganize(depth: number): Promise<Reorganization | undefined>
  close(): Promise<void>
}

export interface Charge {
  /** Reference of the payment that moved the money. */
  readonly reference: string
  /** Its transaction, or what else tells it from other charges. */
  readonly transaction: string
  /** In atomic units of a currency with six decimals. */
  readonly amount: bigint
}

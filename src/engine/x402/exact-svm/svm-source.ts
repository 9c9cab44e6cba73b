import type { SvmNetwork } from '../../base/networks.ts'
import { tokenAccountOf } from '../../base/token-account.ts'
import { patiently, RpcUnavailableError } from '../../chains/evm/log-scanner.ts'
import { checkSvmNode } from '../../chains/svm/check-node.ts'
import type { LandedTransaction, SvmChain } from '../../chains/svm/svm-chain.ts'
import { readOrder } from '../../chains/svm/svm-order.ts'
import { readTransaction } from '../../chains/svm/transaction.ts'
import { transactionsSince } from '../../chains/svm/transactions-since.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import type { Incoming, OnchainPayment, OnchainStatus } from '../../payment/reconcile-source.ts'
import { digestInKey, svmKey } from './svm-key.ts'
import { digestOf } from './svm-payload.ts'
import { findTransaction } from './svm-search.ts'
import { readTransfer } from './transfer.ts'

interface SvmSourceSettings {
  readonly chain: SvmChain
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How long after its record a transaction, whose last height is not recorded any more, can be in no new block. */
const LONG_OVER_MS = 600_000

/**
 * Payments of scheme exact on one Solana network, as the transactions of the payee’s token account show them: those of
 * the layout of the scheme, which no wallet makes for an ordinary transfer. Throws `RpcUnavailableError`.
 */
export class SvmSource {
  readonly #settings: SvmSourceSettings
  readonly #network: SvmNetwork

  private constructor(settings: SvmSourceSettings, network: SvmNetwork) {
    this.#settings = settings
    this.#network = network
  }

  /** Throws also when the node is behind, or on another network. */
  static async open(settings: SvmSourceSettings, network: SvmNetwork): Promise<SvmSource> {
    await checkSvmNode(settings, network)
    return new SvmSource(settings, network)
  }

  /** What has come in to an owner since a time, newest first, page by page. */
  async *incoming(payee: string, since: number): AsyncGenerator<readonly Incoming[]> {
    const account = tokenAccountOf(payee, this.#network.token.address)
    if (account === undefined) return
    for await (const page of transactionsSince(this.#settings, account, since)) {
      const succeeded = page.filter((found) => found.succeeded)
      const landed = await Promise.all(succeeded.map(({ signature }) => this.transaction(signature)))
      yield succeeded.flatMap(({ signature }, place) => {
        const transaction = landed[place]
        if (!transaction) throw new RpcUnavailableError('its node does not show a transaction that it names')
        return this.#arrival(signature, transaction, { payee, account }) ?? []
      })
    }
  }

  #arrival(
    signature: string,
    landed: LandedTransaction,
    { payee, account }: Destination,
  ): Incoming | undefined {
    const payment = this.#paymentIn(signature, landed, payee, account)
    if (payment !== undefined) return { kind: 'payment', payment }
    const amount = landed.changes
      .filter(({ owner, mint }) => owner === payee && mint === this.#network.token.address)
      .reduce((sum, change) => sum + change.amount, 0n)
    return amount > 0n ? { kind: 'transfer', amount } : undefined
  }

  #paymentIn(
    transaction: string,
    { bytes, slot: block }: LandedTransaction,
    payee: string,
    account: string,
  ): OnchainPayment | undefined {
    const read = readTransaction(bytes)
    if (read.kind !== 'transaction') return undefined
    const layout = readTransfer(read.transaction)
    if (layout.kind !== 'transfer') return undefined
    const { mint, destination, amount, payer } = layout.transfer
    if (mint !== this.#network.token.address || destination !== account) return undefined
    const digest = digestOf(read.transaction)
    const key = svmKey(this.#network, { ...read, transfer: layout.transfer, digest })
    return { key, transaction, block, payer, payee, amount }
  }

  /** What has become of a payment, from the transaction that its record names, or from those of its payer. */
  async status(record: PaymentRecord): Promise<OnchainStatus> {
    const { chain, now } = this.#settings
    const { payer, payee, receipt, dispatch, validBefore } = record
    const { address: mint } = this.#network.token
    const [source, account] = [tokenAccountOf(payer, mint), tokenAccountOf(payee, mint)]
    const digest = digestInKey(record.key)
    if (digest === undefined || source === undefined || account === undefined) return { kind: 'unclear' }
    const order = dispatch?.kind === 'payer' ? readOrder(dispatch.raw) : undefined
    // Read before the search: what is not found after its last height is in no block.
    const height = await patiently(this.#settings, () => chain.height('finalized'))
    const named = receipt?.transaction ?? (dispatch?.kind === 'payer' ? dispatch.hash : undefined)
    const seen =
      (named === undefined ? undefined : await this.#shown(named, record, account)) ??
      (await this.#search(source, digest, record, account))
    if (seen !== undefined) return seen
    const isOver = order === undefined ? now() > validBefore + LONG_OVER_MS : height > order.lastHeight
    return { kind: isOver ? 'expired' : 'open' }
  }

  async #search(
    source: string,
    digest: string,
    record: PaymentRecord,
    account: string,
  ): Promise<OnchainStatus | undefined> {
    const found = await findTransaction(this.#settings.chain, source, digest, record)
    if (found.kind === 'none') return undefined
    return found.kind === 'unclear' ? { kind: 'unclear' } : this.#shown(found.signature, record, account)
  }

  /** Undefined when the transaction is unknown, or that of another payment. */
  async #shown(
    transaction: string,
    { key, payee }: PaymentRecord,
    account: string,
  ): Promise<OnchainStatus | undefined> {
    const landed = await this.transaction(transaction)
    if (landed === null) return undefined
    const read = readTransaction(landed.bytes)
    if (read.kind !== 'transaction' || digestOf(read.transaction) !== digestInKey(key)) return undefined
    if (!landed.succeeded) return { kind: 'reverted', transaction }
    const payment = this.#paymentIn(transaction, landed, payee, account)
    return payment === undefined ? { kind: 'elsewhere', transaction } : { kind: 'moved', payment }
  }

  /** Null when no confirmed block contains it. */
  transaction(signature: string): Promise<LandedTransaction | null> {
    return patiently(this.#settings, () => this.#settings.chain.transaction(signature))
  }
}

interface Destination {
  readonly payee: string
  /** Its token account. */
  readonly account: string
}

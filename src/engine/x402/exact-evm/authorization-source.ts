import { sameAddress, type Address } from '../../base/address.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import type { Network } from '../../base/networks.ts'
import { isTransactionHash, spanOf, type LogScanner } from '../../chains/evm/log-scanner.ts'
import {
  addressTopic,
  readTransfer,
  topicAddress,
  transfersTo,
  type Transfer,
} from '../../chains/evm/transfer-log.ts'
import type {
  IncomingSpan,
  OnchainStatus,
  Incoming,
  OnchainPayment,
  ReconcileSource,
} from '../../payment/reconcile-source.ts'
import { PermitSource } from '../upto-evm/permit-source.ts'
import { paymentKey, readPaymentKey } from './payment-key.ts'
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED } from '../../chains/evm/eip3009/authorization-log.ts'
import { stateCall } from '../../chains/evm/eip3009/token-state.ts'
import type { Log, BlockRange } from '../../chains/evm/event-log.ts'

/** Payers asked for at once: nodes limit how many alternatives a topic may have. */
const PAYERS = 50

/** How long before its record a payment may have been executed: authorizations are valid for an hour at most. */
const LEAD_MS = 3_600_000

/**
 * Payments of scheme upto, and of scheme exact: an AuthorizationUsed and, as the very next log, the Transfer it authorizes. That is the order
 * of every token in the table (FiatTokenV2); another transfer in the same transaction is not this one's.
 */
export class X402Source implements ReconcileSource {
  readonly #scanner: LogScanner
  readonly #network: Network
  readonly #permits: PermitSource

  constructor(scanner: LogScanner, network: Network) {
    this.#scanner = scanner
    this.#network = network
    this.#permits = new PermitSource(scanner, network)
  }

  get #token(): Address {
    return this.#network.token.address
  }

  async *incoming(payees: readonly Address[], span: BlockRange): AsyncGenerator<IncomingSpan> {
    for await (const found of this.#scanner.logs(transfersTo(this.#token, payees), span)) {
      const nonces = await this.#noncesBefore(found.logs)
      const others = found.logs.filter((log) => nonceOf(log, nonces) === undefined)
      const permits = await this.#permits.paymentsIn(others)
      const incoming = found.logs.flatMap((log) => this.#arrival(log, nonces, permits) ?? [])
      yield { span: found.span, incoming }
    }
  }

  #arrival(
    log: Log,
    nonces: ReadonlyMap<string, `0x${string}`>,
    permits: ReadonlyMap<string, OnchainPayment>,
  ): Incoming | undefined {
    const transfer = readTransfer(log)
    if (transfer === undefined) return undefined
    const { amount } = transfer
    const nonce = nonceOf(log, nonces)
    if (nonce === undefined) {
      const payment = permits.get(log.transactionHash)
      return payment === undefined ? { kind: 'transfer', amount } : { kind: 'payment', payment }
    }
    return { kind: 'payment', payment: this.#payment(log.transactionHash, log.block, transfer, nonce) }
  }

  /** Nonces that known payers have used in these blocks, by log position. */
  async #noncesBefore(logs: readonly Log[]): Promise<Map<string, `0x${string}`>> {
    const nonces = new Map<string, `0x${string}`>()
    const payers = [...new Set(logs.flatMap(({ topics }) => topicAddress(topics[1]) ?? []))]
    for (let first = 0; first < payers.length; first += PAYERS) {
      const some = payers.slice(first, first + PAYERS).map(addressTopic)
      const filter = { address: this.#token, topics: [AUTHORIZATION_USED, some] }
      for await (const { logs: used } of this.#scanner.logs(filter, spanOf(logs))) {
        for (const { topics, transactionHash, index } of used) {
          const [, authorizer, nonce] = topics
          const payer = topicAddress(authorizer)
          if (payer !== undefined && nonce !== undefined)
            nonces.set(placeOf(transactionHash, index, payer), nonce)
        }
      }
    }
    return nonces
  }

  async status(record: PaymentRecord): Promise<OnchainStatus> {
    if (record.scheme === 'upto') return this.#permits.status(record)
    const signed = readPaymentKey(record.key)
    if (signed === undefined) return { kind: 'unclear' }
    const { from, nonce } = signed
    const named = record.receipt?.transaction ?? hashOf(record)
    const seen = isTransactionHash(named) ? await this.#used(named, signed, record) : undefined
    if (seen !== undefined) return seen
    const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], addressTopic(from), nonce]
    const span = { from: await this.#scanner.blockAt(record.createdAt - LEAD_MS), to: this.#scanner.head }
    for await (const { logs } of this.#scanner.logs({ address: this.#token, topics }, span)) {
      const [log] = logs
      if (log === undefined) continue
      const { transactionHash: transaction } = log
      if (log.topics[0] === AUTHORIZATION_CANCELED) return { kind: 'canceled', transaction }
      return (await this.#used(transaction, signed, record)) ?? { kind: 'elsewhere', transaction }
    }
    const state = await this.#scanner.call(this.#token, stateCall(from, nonce))
    if (!/^0x0{64}$/.test(state)) return { kind: 'unclear' }
    return { kind: this.#scanner.headTime >= record.validBefore ? 'expired' : 'open' }
  }

  /** What a transaction has done with this authorization; undefined when it has nothing to do with it. */
  async #used(
    transaction: string,
    signed: NonNullable<ReturnType<typeof readPaymentKey>>,
    { payee }: PaymentRecord,
  ): Promise<OnchainStatus | undefined> {
    const receipt = await this.#scanner.receipt(transaction)
    if (receipt === null) return undefined
    const place = receipt.logs.findIndex((log) => this.#isUse(log, signed))
    if (place === -1) return undefined
    const next = receipt.logs[place + 1]
    const transfer = next === undefined || !this.#isOurs(next) ? undefined : readTransfer(next)
    if (transfer === undefined || !sameAddress(transfer.to, payee)) return { kind: 'elsewhere', transaction }
    return { kind: 'moved', payment: this.#payment(transaction, receipt.block, transfer, signed.nonce) }
  }

  #isUse(log: Log, { from, nonce }: { readonly from: Address; readonly nonce: string }): boolean {
    const [selector, authorizer, used] = log.topics
    if (!this.#isOurs(log) || selector !== AUTHORIZATION_USED) return false
    return topicAddress(authorizer) === from && used?.toLowerCase() === nonce
  }

  #isOurs({ address }: Log): boolean {
    return sameAddress(address, this.#token)
  }

  #payment(
    transaction: string,
    block: bigint,
    { from, to, amount }: Transfer,
    nonce: `0x${string}`,
  ): OnchainPayment {
    const key = paymentKey(this.#network, { from, nonce })
    return { key, transaction, block, payer: from, payee: to, amount }
  }
}

/** The nonce of the authorization that has made a transfer. */
function nonceOf(log: Log, nonces: ReadonlyMap<string, `0x${string}`>): `0x${string}` | undefined {
  const transfer = readTransfer(log)
  return transfer && nonces.get(placeOf(log.transactionHash, log.index - 1n, transfer.from))
}

function placeOf(transaction: string, index: bigint, payer: Address): string {
  return `${transaction}:${index}:${payer}`
}

function hashOf({ dispatch }: PaymentRecord): string | undefined {
  return dispatch?.kind === 'own' || dispatch?.kind === 'payer' ? dispatch.hash : undefined
}

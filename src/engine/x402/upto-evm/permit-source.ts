import { keccak256 } from 'js-sha3'
import { sameAddress, type Address } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import type { Log } from '../../chains/evm/event-log.ts'
import { isTransactionHash, spanOf, type LogScanner } from '../../chains/evm/log-scanner.ts'
import { PERMIT2, UPTO_PROXY } from '../../base/permit2.ts'
import { bitmapCall, cancels, INVALIDATION, isInBitmap } from '../../chains/evm/permit2/permit-outcome.ts'
import { findSettleCall } from '../../chains/evm/permit2/settle-call.ts'
import { addressTopic, readTransfer, transfersTo } from '../../chains/evm/transfer-log.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import type { OnchainPayment, OnchainStatus } from '../../payment/reconcile-source.ts'
import { readUptoKey, uptoKey } from './upto-key.ts'

const SETTLED = [`0x${keccak256('Settled()')}`, `0x${keccak256('SettledWithPermit()')}`] as const

/** How long before its record a payment may have been executed. */
const LEAD_MS = 3_600_000

/** Payments of scheme upto: a transfer in a transaction that calls the proxy, which names payer and nonce. */
export class PermitSource {
  readonly #scanner: LogScanner
  readonly #network: Network

  constructor(scanner: LogScanner, network: Network) {
    this.#scanner = scanner
    this.#network = network
  }

  /** The payments among transfers of the token, by transaction. */
  async paymentsIn(logs: readonly Log[]): Promise<ReadonlyMap<string, OnchainPayment>> {
    const found = new Map<string, OnchainPayment>()
    if (logs.length === 0) return found
    const settled = new Set<string>()
    const filter = { address: UPTO_PROXY, topics: [SETTLED] }
    for await (const { logs: events } of this.#scanner.logs(filter, spanOf(logs)))
      for (const { transactionHash } of events) settled.add(transactionHash)
    for (const log of logs.filter(({ transactionHash }) => settled.has(transactionHash))) {
      const payment = await this.#paymentOf(log)
      if (payment !== undefined) found.set(log.transactionHash, payment)
    }
    return found
  }

  async status(record: PaymentRecord): Promise<OnchainStatus> {
    const signed = readUptoKey(record.key)
    if (signed === undefined) return { kind: 'unclear' }
    const { from, nonce } = signed
    const named =
      record.receipt?.transaction ?? (record.dispatch?.kind === 'own' ? record.dispatch.hash : undefined)
    if (isTransactionHash(named)) {
      const receipt = await this.#scanner.receipt(named)
      const seen = await this.#among(receipt?.logs ?? [], record)
      if (seen !== undefined) return seen
    }
    const bitmap = await this.#scanner.call(PERMIT2, bitmapCall(from, BigInt(nonce)))
    if (!/^0x[0-9a-f]{64}$/i.test(bitmap)) return { kind: 'unclear' }
    if (!isInBitmap(BigInt(bitmap), BigInt(nonce)))
      return { kind: this.#scanner.headTime >= record.validBefore ? 'expired' : 'open' }
    const span = { from: await this.#scanner.blockAt(record.createdAt - LEAD_MS), to: this.#scanner.head }
    const toPayee = transfersTo(this.#network.token.address, [asAddress(record.payee)])
    const transfers = { ...toPayee, topics: toPayee.topics.with(1, addressTopic(from)) }
    for await (const { logs } of this.#scanner.logs(transfers, span)) {
      const seen = await this.#among(logs, record)
      if (seen !== undefined) return seen
    }
    const cancelations = { address: PERMIT2, topics: [INVALIDATION, addressTopic(from)] }
    for await (const { logs } of this.#scanner.logs(cancelations, span)) {
      const canceled = logs.find((log) => cancels(log, BigInt(nonce)))
      if (canceled !== undefined) return { kind: 'canceled', transaction: canceled.transactionHash }
    }
    return { kind: 'unclear' }
  }

  /** The payment of a record, if one of these logs is its transfer. */
  async #among(logs: readonly Log[], { key }: PaymentRecord): Promise<OnchainStatus | undefined> {
    for (const log of logs.filter(({ address }) => sameAddress(address, this.#network.token.address))) {
      const payment = await this.#paymentOf(log)
      if (payment?.key === key) return { kind: 'moved', payment }
    }
    return undefined
  }

  async #paymentOf(log: Log): Promise<OnchainPayment | undefined> {
    const transfer = readTransfer(log)
    if (transfer === undefined) return undefined
    const sent = await this.#scanner.transaction(log.transactionHash)
    const call = sent !== null && sameAddress(sent.to, UPTO_PROXY) ? findSettleCall(sent.input) : undefined
    if (call === undefined) return undefined
    const { permit } = call.signed
    const { from, to, amount } = transfer
    if (!sameAddress(permit.from, from) || !sameAddress(permit.to, to) || call.amount !== amount)
      return undefined
    const key = uptoKey(this.#network, permit)
    return { key, transaction: log.transactionHash, block: log.block, payer: from, payee: to, amount }
  }
}

function asAddress(text: string): Address {
  return `0x${text.slice(2)}`
}

import { keccak256 } from 'js-sha3'
import { sameAddress, type Address } from '../base/address.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { isTransactionHash, spanOf, type LogScanner } from '../chains/evm/log-scanner.ts'
import { addressTopic, readTransfer, transfersTo, type Transfer } from '../chains/evm/transfer-log.ts'
import type { IncomingSpan, OnchainStatus, Incoming, ReconcileSource } from '../payment/reconcile-source.ts'
import type { Log, BlockRange } from '../chains/evm/event-log.ts'

export const TRANSFER_WITH_MEMO =
  `0x${fingerprint('TransferWithMemo(address,address,uint256,bytes32)', 32)}` as const

/** How the memo of every MPP payment begins: the protocol’s mark and the version of the memo’s layout. */
const MARK = `0x${fingerprint('mpp', 4)}01`

/**
 * Payments of the Tempo method: a Transfer, followed directly by a TransferWithMemo whose memo ends with a
 * fingerprint of the paid challenge.
 */
export class MppSource implements ReconcileSource {
  readonly #scanner: LogScanner
  readonly #token: Address
  readonly #keys: ReadonlyMap<string, string>

  /** `keys`: the keys of the ledger’s payments by their name on the chain (`onchainNames`). */
  constructor(scanner: LogScanner, token: Address, keys: ReadonlyMap<string, string>) {
    this.#scanner = scanner
    this.#token = token
    this.#keys = keys
  }

  async *incoming(payees: readonly Address[], span: BlockRange): AsyncGenerator<IncomingSpan> {
    for await (const found of this.#scanner.logs(transfersTo(this.#token, payees), span)) {
      const memos = await this.#memosAfter(payees, found.logs)
      yield { span: found.span, incoming: found.logs.flatMap((log) => this.#arrival(log, memos) ?? []) }
    }
  }

  async #memosAfter(payees: readonly Address[], logs: readonly Log[]): Promise<Map<string, string>> {
    const memos = new Map<string, string>()
    if (logs.length === 0) return memos
    const topics = [TRANSFER_WITH_MEMO, null, payees.map(addressTopic)]
    for await (const found of this.#scanner.logs({ address: this.#token, topics }, spanOf(logs))) {
      for (const {
        topics: [, , , memo],
        transactionHash,
        index,
      } of found.logs) {
        if (memo !== undefined) memos.set(placeOf(transactionHash, index), memo)
      }
    }
    return memos
  }

  #arrival(log: Log, memos: ReadonlyMap<string, string>): Incoming | undefined {
    const transfer = readTransfer(log)
    if (transfer === undefined) return undefined
    const { from: payer, to: payee, amount } = transfer
    const { transactionHash: transaction, block } = log
    const memo = memos.get(placeOf(transaction, log.index + 1n))
    if (memo?.startsWith(MARK) !== true) return { kind: 'transfer', amount }
    const key = this.#keys.get(memo.slice(-FINGERPRINT)) ?? this.#keys.get(transaction)
    return { kind: 'payment', payment: { key, transaction, block, payer, payee, amount } }
  }

  async status(record: PaymentRecord): Promise<OnchainStatus> {
    const transaction = transactionOf(record)
    if (!isTransactionHash(transaction)) return { kind: 'unclear' }
    const receipt = await this.#scanner.receipt(transaction)
    if (receipt === null) return { kind: this.#scanner.headTime >= record.validBefore ? 'expired' : 'open' }
    if (!receipt.succeeded) return { kind: 'reverted', transaction }
    const transfers = receipt.logs
      .filter(({ address }) => sameAddress(address, this.#token))
      .flatMap((log) => readTransfer(log) ?? [])
      .filter(({ to }) => sameAddress(to, record.payee))
    const transfer = closest(transfers, record)
    if (transfer === undefined) return { kind: 'elsewhere', transaction }
    const { from: payer, to: payee, amount } = transfer
    const { block } = receipt
    return { kind: 'moved', payment: { key: record.key, transaction, block, payer, payee, amount } }
  }
}

/** Hexadecimal digits of a challenge’s fingerprint. */
const FINGERPRINT = 14

/** The names of a payment on the chain: its transaction, and the fingerprint at the end of its ledger key. */
export function onchainNames(record: PaymentRecord): string[] {
  const challenge = record.key.slice(record.key.lastIndexOf(':') + 1)
  const transaction = transactionOf(record)
  return [fingerprint(challenge, FINGERPRINT / 2), ...(transaction === undefined ? [] : [transaction])]
}

function transactionOf({ receipt, dispatch }: PaymentRecord): string | undefined {
  return receipt?.transaction ?? (dispatch?.kind === 'payer' ? dispatch.hash : undefined)
}

function fingerprint(text: string, bytes: number): string {
  return keccak256(text).slice(0, 2 * bytes)
}

/** The transfer of this payment’s amount; one transaction may hold several. */
function closest(transfers: readonly Transfer[], { amount }: PaymentRecord): Transfer | undefined {
  return transfers.find((transfer) => transfer.amount === BigInt(amount)) ?? transfers[0]
}

function placeOf(transaction: string, index: bigint): string {
  return `${transaction}:${index}`
}

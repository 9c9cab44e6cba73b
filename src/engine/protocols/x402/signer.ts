import type { Address } from '../../address.ts'
import type { Desk } from '../../ledger/claim.ts'
import type { OwnTransaction } from '../../ledger/entry.ts'
import { Turn } from '../../ledger/turn.ts'
import type { Journal } from '../protocol.ts'
import type { Chain, Fees } from '../evm/chain.ts'
import { carryOn, leave, meet, taken, type Count } from './nonce.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (
    transaction: UnsignedTransaction,
  ) => Promise<{ readonly raw: `0x${string}`; readonly hash: `0x${string}` }>
}

export interface UnsignedTransaction extends Fees {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

export type Sent =
  /** In the pool: whether it will succeed is for the chain to say. */
  | { readonly kind: 'sent'; readonly transaction: OwnTransaction }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The node gave no answer after the transaction was handed to it. */
  | { readonly kind: 'unknown' }

/** A broadcast's own timeout and a little more: whoever may still be broadcasting holds the lease. */
const BROADCAST_MS = 10_500
const FEES_MS = 4_000

export interface SignerSettings extends Desk {
  readonly account: Account
  readonly chain: Chain
  readonly chainId: number
  readonly sleep: (ms: number) => Promise<void>
}

/**
 * Sends transactions from one account, one at a time: allocating the account nonce and broadcasting happen under one
 * lease of the ledger, so that neither concurrent requests nor other processes leave a gap or use a nonce twice.
 */
export class Signer {
  readonly #settings: SignerSettings
  readonly #turn: Turn
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #fence: number | undefined
  #count: Count | undefined
  #fees: { readonly value: Fees; readonly at: number } | undefined

  constructor(settings: SignerSettings) {
    const { account, chainId } = settings
    this.#settings = settings
    this.#turn = new Turn({ ...settings, name: `signer:${chainId}:${account.address.toLowerCase()}` })
  }

  get address(): Address {
    return this.#settings.account.address
  }

  /** Records the signed transaction in the journal, then broadcasts it. Rejects when it cannot be recorded. */
  send(to: Address, data: `0x${string}`, gas: bigint, journal: Journal): Promise<Sent> {
    this.#waiting += 1
    const sent = this.#queue.then(async () => {
      try {
        return await this.#send(to, data, gas, journal)
      } finally {
        this.#waiting -= 1
        if (this.#waiting === 0) await this.#turn.giveBack(leave(this.#count))
        else await this.#turn.share(leave(this.#count))
      }
    })
    this.#queue = sent.catch(() => undefined)
    return sent
  }

  async #send(to: Address, data: `0x${string}`, gas: bigint, journal: Journal): Promise<Sent> {
    const { account, chain, chainId } = this.#settings
    if (!(await this.#take())) return { kind: 'unsent', detail: 'the signer is in use by another process' }
    const [fees, count] = await Promise.all([this.#currentFees(), this.#currentCount()])
    if (fees === undefined || count === undefined)
      return { kind: 'unsent', detail: 'the network cannot be reached' }
    const { raw, hash } = await account.sign({ chainId, nonce: count.next, to, data, gas, ...fees })
    const transaction = { kind: 'own', raw, hash, signer: account.address, nonce: count.next } as const
    await journal.record(transaction)
    if (!(await this.#turn.keep(BROADCAST_MS)))
      return { kind: 'unsent', detail: 'another process has taken the signer over' }
    const answer = await chain.broadcast(raw)
    if (answer.kind === 'result' || (answer.kind === 'refused' && isKnown(answer.message))) {
      this.#count = taken(count)
      return { kind: 'sent', transaction }
    }
    // The count stays: the next transaction takes this nonce, unless the chain has counted this one by then.
    return answer.kind === 'refused' && isOutOfPool(answer.message)
      ? { kind: 'unsent', detail: 'the network refuses the transaction' }
      : { kind: 'unknown' }
  }

  async #take(): Promise<boolean> {
    if (await this.#turn.keep(BROADCAST_MS)) return true
    const lease = await this.#turn.take()
    if (lease === undefined) return false
    if (lease.fence !== this.#fence) this.#count = carryOn(lease.left)
    this.#fence = lease.fence
    return true
  }

  async #currentCount(): Promise<Count | undefined> {
    const { chain, now } = this.#settings
    const answer = await chain.nextNonce(this.address)
    if (answer.kind !== 'result') return undefined
    this.#count = meet(this.#count, Number(answer.result), now())
    return this.#count
  }

  async #currentFees(): Promise<Fees | undefined> {
    const { chain, now } = this.#settings
    if (this.#fees !== undefined && now() - this.#fees.at < FEES_MS) return this.#fees.value
    const answer = await chain.fees()
    if (answer.kind !== 'result') return undefined
    this.#fees = { value: answer.result, at: now() }
    return answer.result
  }
}

/**
 * Refusals after which no pool can hold the transaction. Any other may be the second answer to bytes that a proxy has
 * sent twice ("nonce too low": the first were mined), and proves nothing.
 */
function isOutOfPool(message: string): boolean {
  return /insufficient funds|intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i.test(
    message,
  )
}

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}

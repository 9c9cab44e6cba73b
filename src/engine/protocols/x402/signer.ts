import type { Address } from '../../address.ts'
import type { StoredTransaction } from '../../ledger/entry.ts'
import type { Ledger, Lease } from '../../ledger/ledger.ts'
import type { Journal } from '../protocol.ts'
import type { Chain, Fees } from './chain.ts'

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
  | { readonly kind: 'sent'; readonly transaction: StoredTransaction }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The node gave no answer after the transaction was handed to it. */
  | { readonly kind: 'unknown' }

const LEASE_MS = 15_000
const LEASE_RETRY_MS = 50
const LEASE_PATIENCE_MS = 20_000
const FEES_MS = 4_000
/** Longer than any network of the table takes to see a transaction. */
const STALL_MS = 30_000

export interface SignerSettings {
  readonly account: Account
  readonly chain: Chain
  readonly chainId: number
  readonly ledger: Ledger
  readonly owner: string
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/**
 * Sends transactions from one account, one at a time: allocating the account nonce and broadcasting happen under one
 * lease of the ledger, so that neither concurrent requests nor other processes leave a gap or use a nonce twice.
 */
export class Signer {
  readonly #settings: SignerSettings
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #lease: Lease | undefined
  #leasedUntil = 0
  #next: number | undefined
  /** What the chain sees of our nonces while it sees fewer than we have counted. */
  #stall: { readonly seen: number; readonly since: number } | undefined
  #fees: { readonly value: Fees; readonly at: number } | undefined

  constructor(settings: SignerSettings) {
    this.#settings = settings
  }

  get address(): Address {
    return this.#settings.account.address
  }

  /** Records the signed transaction in the journal, then broadcasts it. */
  send(to: Address, data: `0x${string}`, gas: bigint, journal: Journal): Promise<Sent> {
    this.#waiting += 1
    const sent = this.#queue.then(async () => {
      try {
        return await this.#send(to, data, gas, journal)
      } finally {
        this.#waiting -= 1
        if (this.#waiting === 0) await this.#putDown()
      }
    })
    this.#queue = sent.catch(() => undefined)
    return sent
  }

  async #send(to: Address, data: `0x${string}`, gas: bigint, journal: Journal): Promise<Sent> {
    const { account, chain, chainId } = this.#settings
    if (!(await this.#pickUp())) return { kind: 'unsent', detail: 'the signer is in use by another process' }
    const fees = await this.#currentFees()
    const nonce = await this.#nextNonce()
    if (fees === undefined || nonce === undefined)
      return { kind: 'unsent', detail: 'the network cannot be reached' }
    const { raw, hash } = await account.sign({ chainId, nonce, to, data, gas, ...fees })
    const transaction = { raw, hash, signer: account.address, nonce }
    await journal.record(transaction)
    const answer = await chain.broadcast(raw)
    if (answer.kind === 'result' || (answer.kind === 'refused' && isKnown(answer.message))) {
      this.#next = nonce + 1
      return { kind: 'sent', transaction }
    }
    // Whatever has happened to it, the chain knows the next nonce better than we do.
    this.#next = undefined
    return answer.kind === 'unreachable'
      ? { kind: 'unknown' }
      : { kind: 'unsent', detail: 'the network refuses the transaction' }
  }

  async #pickUp(): Promise<boolean> {
    const { ledger, owner, now, sleep, chainId, account } = this.#settings
    const name = `signer:${chainId}:${account.address.toLowerCase()}`
    if (this.#lease !== undefined && this.#leasedUntil - now() > LEASE_MS / 2) return true
    const patience = now() + LEASE_PATIENCE_MS
    for (;;) {
      const until = now() + LEASE_MS
      const lease = await ledger.lease(name, owner, now(), until)
      if (lease !== undefined) {
        if (this.#lease?.fence !== lease.fence) this.#next = lease.value
        this.#lease = lease
        this.#leasedUntil = until
        return true
      }
      if (now() > patience) return false
      await sleep(LEASE_RETRY_MS)
    }
  }

  async #putDown(): Promise<void> {
    const lease = this.#lease
    if (lease === undefined) return
    this.#lease = undefined
    await this.#settings.ledger.release(lease, this.#next ?? 0)
  }

  /**
   * The higher of what we have counted and what the chain has seen: a fresh process, or a key used elsewhere. When the
   * chain stays behind our count, transactions were dropped, and the gap they leave must be filled for any later one.
   */
  async #nextNonce(): Promise<number | undefined> {
    const { chain, now } = this.#settings
    const answer = await chain.nextNonce(this.address)
    if (answer.kind !== 'result') return undefined
    const seen = Number(answer.result)
    const counted = this.#next ?? 0
    if (seen >= counted) this.#stall = undefined
    else if (this.#stall?.seen !== seen) this.#stall = { seen, since: now() }
    const dropped = this.#stall !== undefined && now() - this.#stall.since > STALL_MS
    return dropped ? seen : Math.max(seen, counted)
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

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}

import type { Address } from '../../base/address.ts'
import { type LockSettings, DistributedLock } from '../../ledger/distributed-lock.ts'
import type { LeaseState } from '../../ledger/ledger.ts'
import type { Chain } from './chain.ts'

/**
 * How long nodes behind one address may take to count a transaction that one of them has accepted: several blocks of
 * every supported network.
 */
export const CATCH_UP_MS = 30_000

/**
 * How long a confirmed count is used without asking again: the key is ours alone, and whatever a node refuses ends it
 * at once. Short enough to notice a node that has forgotten its pool.
 */
const CONFIRMED_MS = 2_000

/** The next nonces of an account. */
export interface NonceState {
  readonly next: number
  /** Nonces above the next one that the node has accepted: these transactions wait for the missing ones. */
  readonly ahead: readonly number[]
  /** When the chain last agreed or advanced, in milliseconds since the epoch. */
  readonly at: number
  /** The highest count of the chain that this process has seen. */
  readonly seen: number | undefined
}

/**
 * The higher of what we and the chain have counted: we are ahead while a node does not show yet what it has accepted,
 * the chain is when the key was used elsewhere.
 *
 * A chain that stays behind us for `CATCH_UP_MS` without moving has lost a transaction (a recorded one never reached
 * the node, or a node forgot its pool), and everything above would wait for it for ever: from then on the count of the
 * chain is used. That is safe even if nothing was lost: then two transactions compete for one nonce: the node refuses
 * the second, or one of them is never carried out, and what becomes of each payment is read from the chain by its
 * authorization, which moves money once whichever transaction carries it.
 */
export function sync(state: NonceState | undefined, seen: number, now: number): NonceState {
  if (state === undefined) return { next: seen, ahead: [], at: now, seen }
  if (seen >= state.next) return { ...closeUp(seen, state.ahead), at: now, seen }
  if (state.seen !== undefined && seen > state.seen) return { ...state, at: now, seen }
  if (now - state.at > CATCH_UP_MS) return { next: seen, ahead: [], at: now, seen }
  return { ...state, seen: Math.max(seen, state.seen ?? seen) }
}

/** The nonces for this number of transactions, lowest first. */
export function allocate({ next, ahead }: NonceState, amount: number): readonly number[] {
  const nonces: number[] = []
  for (let nonce = next; nonces.length < amount; nonce += 1) if (!ahead.includes(nonce)) nonces.push(nonce)
  return nonces
}

/** Records that the node has transactions with these nonces; the lowest missing one is next. */
export function markTaken(state: NonceState, nonces: readonly number[]): NonceState {
  return { ...state, ...closeUp(state.next, [...state.ahead, ...nonces]) }
}

/** Continues with the state that another process has left. */
export function restore(left: LeaseState | undefined): NonceState | undefined {
  return left === undefined ? undefined : { next: left.value, ahead: [], at: left.at, seen: undefined }
}

export function snapshot(state: NonceState | undefined): LeaseState | undefined {
  return state === undefined ? undefined : { value: state.next, at: state.at }
}

function closeUp(start: number, used: readonly number[]): Pick<NonceState, 'next' | 'ahead'> {
  let next = start
  while (used.includes(next)) next += 1
  return { next, ahead: used.filter((nonce) => nonce > next) }
}

interface NonceLeaseSettings extends LockSettings {
  readonly account: { readonly address: Address }
  readonly chain: Chain
  /** Called with a range of nonces (first included, last excluded) that another program has used in the pool. */
  readonly foreign: (from: number, to: number) => void
}

/** `outdated`: something has happened since the question. */
type Asked = 'answered' | 'unanswered' | 'outdated'

/** The nonces of one account, while this process holds its lease in the ledger. */
export class NonceLease {
  readonly #settings: NonceLeaseSettings
  readonly #lock: DistributedLock
  #fence: number | undefined
  #state: NonceState | undefined
  /** When the count was asked for that `#state` agrees with; undefined when something has happened since. */
  #confirmedAt: number | undefined
  /** Whether the next nonce is a lost one: transactions above it may still be in the pool. */
  #steppedBack = false
  #asking: Promise<Asked> | undefined
  #doubts = 0

  constructor(settings: NonceLeaseSettings) {
    this.#settings = settings
    this.#lock = new DistributedLock(settings)
  }

  /** Whether this process holds the account for the next `ms` milliseconds; waits up to `patience` for it. */
  async acquire(ms: number, patience: number): Promise<boolean> {
    if (await this.#lock.extend(ms)) return true
    const lease = await this.#lock.acquire(patience)
    if (lease === undefined) return false
    // The known state of the pool is still valid when nobody has held the lease in between.
    const alone = this.#fence !== undefined && lease.fencingToken - this.#fence <= 1
    if (!alone || this.#state === undefined) {
      this.doubt()
      this.#state = restore(lease.leaseState)
    }
    this.#fence = lease.fencingToken
    return true
  }

  /** Grows each time the account is acquired: nonces that were counted under another number may be used by now. */
  get fence(): number | undefined {
    return this.#fence
  }

  /** Whether this process has held the account since it had this fence, and will for the next `ms` milliseconds. */
  async extend(ms: number, fence: number | undefined): Promise<boolean> {
    return this.#fence === fence && (await this.#lock.extend(ms)) && this.#fence === fence
  }

  /** Whether other processes may ask for the account now. */
  get isTurnOver(): boolean {
    return this.#lock.isTurnOver
  }

  release(): Promise<void> {
    return this.#lock.release(snapshot(this.#state))
  }

  yieldIfContended(): Promise<void> {
    return this.#lock.yieldIfContended(snapshot(this.#state))
  }

  /** The count that was confirmed a moment ago, or that of the chain; undefined when it does not answer. */
  async current(): Promise<NonceState | undefined> {
    // The node may have been silent when it was asked ahead, and answer again now that somebody needs it.
    let mayAskAgain = this.#asking !== undefined
    while (!this.#isConfirmed) {
      const asked = await this.#confirm()
      if (asked === 'answered') break
      if (asked === 'outdated') continue
      if (!mayAskAgain) return undefined
      mayAskAgain = false
    }
    return this.#state
  }

  /** Asks for the count of a known account before it is needed, so that nothing waits for the answer. */
  prepare(): void {
    if (this.#state?.seen !== undefined && this.#confirmedFor >= CONFIRMED_MS / 2) void this.#confirm()
  }

  /** The count may be wrong: it is not used again before the chain has been asked. */
  doubt(): void {
    this.#confirmedAt = undefined
    this.#asking = undefined
    this.#doubts += 1
  }

  get #isConfirmed(): boolean {
    return this.#confirmedFor < CONFIRMED_MS
  }

  /** Milliseconds since the question that confirmed the count. */
  get #confirmedFor(): number {
    return this.#settings.now() - (this.#confirmedAt ?? -Infinity)
  }

  #confirm(): Promise<Asked> {
    if (this.#asking !== undefined) return this.#asking
    const asking = this.#sync().finally(() => {
      if (this.#asking === asking) this.#asking = undefined
    })
    this.#asking = asking
    return asking
  }

  async #sync(): Promise<Asked> {
    const { account, chain, now, foreign } = this.#settings
    const [at, doubts] = [now(), this.#doubts]
    const pending = await chain.nextNonce(account.address)
    if (doubts !== this.#doubts) return 'outdated'
    if (pending.kind !== 'result') return 'unanswered'
    if (this.#state?.seen === undefined) {
      const head = await chain.blockNumber()
      const mined = head.kind === 'result' ? await chain.minedNonce(account.address, head.result) : head
      if (mined.kind === 'result') foreign(Number(mined.result), Number(pending.result))
    }
    const before = this.#state?.next ?? 0
    this.#state = sync(this.#state, Number(pending.result), now())
    if (this.#state.next < before) this.#steppedBack = true
    if (Number(pending.result) === this.#state.next && !this.#steppedBack) this.#confirmedAt = at
    return 'answered'
  }

  markTaken(nonces: readonly number[]): void {
    this.#steppedBack = false
    if (this.#state !== undefined) this.#state = markTaken(this.#state, nonces)
  }

  /** Forgets the count after a chain reorganization: the next answer of the chain is used. */
  reset(): void {
    this.doubt()
    this.#state = undefined
  }
}

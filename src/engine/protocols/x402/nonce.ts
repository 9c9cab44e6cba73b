import type { Address } from '../../address.ts'
import type { Left } from '../../ledger/ledger.ts'
import { Turn, type TurnSettings } from '../../ledger/turn.ts'
import type { Chain } from '../evm/chain.ts'

/**
 * How long a node may take to count a transaction that it, or another node behind the same address, has accepted:
 * several blocks of every network of the table.
 */
export const CATCH_UP_MS = 30_000

/** Which nonces of an account come next. */
export interface NonceState {
  readonly next: number
  /** Nonces above the next one that the node has accepted: they wait for those below. */
  readonly ahead: readonly number[]
  /** When the chain last agreed, or was last seen to catch up: milliseconds since the epoch. */
  readonly at: number
  /** The chain's own count at its highest, as far as this process has seen it. */
  readonly seen: number | undefined
}

/**
 * The higher of what we and the chain have counted: we are ahead while a node does not show yet what it has accepted,
 * the chain is when the key was used elsewhere.
 *
 * A chain that stays behind us for `CATCH_UP_MS` without moving has lost a transaction (a recorded one never reached the
 * node, or a node forgot its pool), and everything above would wait for it for ever: from there on the chain's count
 * holds. That is safe when it is wrong, for then two transactions compete for one nonce: the node refuses the second,
 * or one of them is never carried out, and what becomes of each payment is read from the chain by its authorization,
 * which moves money once whichever transaction carries it.
 */
export function sync(state: NonceState | undefined, seen: number, now: number): NonceState {
  if (state === undefined) return { next: seen, ahead: [], at: now, seen }
  if (seen >= state.next) return { ...closeUp(seen, state.ahead), at: now, seen }
  if (state.seen !== undefined && seen > state.seen) return { ...state, at: now, seen }
  if (now - state.at > CATCH_UP_MS) return { next: seen, ahead: [], at: now, seen }
  return { ...state, seen: Math.max(seen, state.seen ?? seen) }
}

/** The nonces for so many transactions, lowest first. */
export function allocate({ next, ahead }: NonceState, amount: number): readonly number[] {
  const nonces: number[] = []
  for (let nonce = next; nonces.length < amount; nonce += 1) if (!ahead.includes(nonce)) nonces.push(nonce)
  return nonces
}

/** The node has transactions with these nonces; one below them that it has not is the next. */
export function markTaken(state: NonceState, nonces: readonly number[]): NonceState {
  return { ...state, ...closeUp(state.next, [...state.ahead, ...nonces]) }
}

/** Goes on where another process has stopped. */
export function restore(left: Left | undefined): NonceState | undefined {
  return left === undefined ? undefined : { next: left.value, ahead: [], at: left.at, seen: undefined }
}

export function snapshot(state: NonceState | undefined): Left | undefined {
  return state === undefined ? undefined : { value: state.next, at: state.at }
}

function closeUp(start: number, used: readonly number[]): Pick<NonceState, 'next' | 'ahead'> {
  let next = start
  while (used.includes(next)) next += 1
  return { next, ahead: used.filter((nonce) => nonce > next) }
}

export interface NonceLeaseSettings extends TurnSettings {
  readonly account: { readonly address: Address }
  readonly chain: Chain
  /** Told of nonces from the first up to the second that somebody else has left in the pool. */
  readonly foreign: (from: number, to: number) => void
}

/** The nonces of one account, for as long as this process holds its lease in the ledger. */
export class NonceLease {
  readonly #settings: NonceLeaseSettings
  readonly #turn: Turn
  #fence: number | undefined
  #state: NonceState | undefined

  constructor(settings: NonceLeaseSettings) {
    this.#settings = settings
    this.#turn = new Turn(settings)
  }

  /** Whether the account is this process’s for the next `ms` milliseconds; waits for it for `patience`. */
  async take(ms: number, patience: number): Promise<boolean> {
    if (await this.#turn.keep(ms)) return true
    const lease = await this.#turn.take(patience)
    if (lease === undefined) return false
    // What this process knows of the pool is still true when nobody has held the lease in between.
    const alone = this.#fence !== undefined && lease.fence - this.#fence <= 1
    if (!alone || this.#state === undefined) this.#state = restore(lease.left)
    this.#fence = lease.fence
    return true
  }

  /** Whether the account is still this process’s, and will be for the next `ms` milliseconds. */
  keep(ms: number): Promise<boolean> {
    return this.#turn.keep(ms)
  }

  giveBack(): Promise<void> {
    return this.#turn.giveBack(snapshot(this.#state))
  }

  share(): Promise<void> {
    return this.#turn.share(snapshot(this.#state))
  }

  /** Asks the chain; undefined when it does not say. */
  async sync(): Promise<NonceState | undefined> {
    const { account, chain, now, foreign } = this.#settings
    const pending = await chain.nextNonce(account.address)
    if (pending.kind !== 'result') return undefined
    if (this.#state?.seen === undefined) {
      const head = await chain.blockNumber()
      const mined = head.kind === 'result' ? await chain.minedNonce(account.address, head.result) : head
      if (mined.kind === 'result') foreign(Number(mined.result), Number(pending.result))
    }
    this.#state = sync(this.#state, Number(pending.result), now())
    return this.#state
  }

  markTaken(nonces: readonly number[]): void {
    if (this.#state !== undefined) this.#state = markTaken(this.#state, nonces)
  }

  /** The chain has gone back: what it says next time holds. */
  reset(): void {
    this.#state = undefined
  }
}

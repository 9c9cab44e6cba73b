import type { Left } from '../../ledger/ledger.ts'

/**
 * How long a node may take to count a transaction that it, or another node behind the same address, has accepted:
 * several blocks of every network of the table.
 */
export const CATCH_UP_MS = 30_000

/** Which nonces of an account come next. */
export interface Count {
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
export function meet(count: Count | undefined, seen: number, now: number): Count {
  if (count === undefined) return { next: seen, ahead: [], at: now, seen }
  if (seen >= count.next) return { ...closeUp(seen, count.ahead), at: now, seen }
  if (count.seen !== undefined && seen > count.seen) return { ...count, at: now, seen }
  if (now - count.at > CATCH_UP_MS) return { next: seen, ahead: [], at: now, seen }
  return { ...count, seen: Math.max(seen, count.seen ?? seen) }
}

/** The nonces for so many transactions, lowest first. */
export function allot({ next, ahead }: Count, amount: number): readonly number[] {
  const nonces: number[] = []
  for (let nonce = next; nonces.length < amount; nonce += 1) if (!ahead.includes(nonce)) nonces.push(nonce)
  return nonces
}

/** The node has taken the transactions with these nonces; one below them that it has not is the next. */
export function taken(count: Count, nonces: readonly number[]): Count {
  return { ...count, ...closeUp(count.next, [...count.ahead, ...nonces]) }
}

/** Goes on where another process has stopped. */
export function carryOn(left: Left | undefined): Count | undefined {
  return left === undefined ? undefined : { next: left.value, ahead: [], at: left.at, seen: undefined }
}

export function leave(count: Count | undefined): Left | undefined {
  return count === undefined ? undefined : { value: count.next, at: count.at }
}

function closeUp(start: number, used: readonly number[]): Pick<Count, 'next' | 'ahead'> {
  let next = start
  while (used.includes(next)) next += 1
  return { next, ahead: used.filter((nonce) => nonce > next) }
}

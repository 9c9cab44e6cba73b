import type { OwnTransaction } from '../../ledger/entry.ts'
import type { Broadcast } from './broadcast.ts'
import { NOT_TAKEN, type Effort, type Errand, type Sent, type Unable } from './errand.ts'
import type { Bid } from './gas.ts'

/** Somebody who waits for what becomes of an errand. */
export interface Waiting {
  readonly errand: Errand
  readonly effort: Effort
  readonly resolve: (sent: Sent | Unable) => void
  readonly reject: (fault: unknown) => void
}

/** One that may be signed. */
export interface Ready extends Waiting {
  readonly price: Bid
  readonly cost: bigint
}

export interface Signed {
  readonly ready: Ready
  readonly transaction: OwnTransaction & { readonly raw: `0x${string}` }
}

/** Signs and writes down; the nonce of one that cannot be written would be a gap, so those after it are signed anew. */
export async function writeDown(
  ready: readonly Ready[],
  nonces: readonly number[],
  sign: (ready: Ready, nonce: number) => Signed,
): Promise<readonly Signed[]> {
  const recorded: Signed[] = []
  let rest = ready
  while (rest.length > 0) {
    const free = nonces.slice(recorded.length)
    const signed = rest.flatMap((each, place) => {
      const nonce = free[place]
      return nonce === undefined ? [] : [sign(each, nonce)]
    })
    const written = await Promise.allSettled(
      signed.map(({ ready: { errand }, transaction }) => errand.journal.record(transaction)),
    )
    const gap = written.findIndex(({ status }) => status === 'rejected')
    const [end, fault] = [gap === -1 ? rest.length : gap, written[gap]]
    if (fault?.status === 'rejected') rest[gap]?.reject(fault.reason)
    recorded.push(...signed.slice(0, end))
    rest = rest.slice(end + 1)
  }
  return recorded
}

/** Those the node has refused below one that it has taken: what it has taken waits until their nonces are used. */
export function gaps(signed: readonly Signed[], outcomes: readonly Broadcast[]): readonly Signed[] {
  const highest = outcomes.lastIndexOf('taken')
  return signed.filter((_, place) => {
    const outcome = outcomes[place]
    return place < highest && (outcome === 'refused' || outcome === 'unfunded')
  })
}

/** Nobody is left afterwards. */
export function answer(waiting: readonly Waiting[], sent: Sent | Unable): readonly [] {
  for (const { resolve } of waiting) resolve(sent)
  return []
}

export function sentOf(outcome: Broadcast, transaction: OwnTransaction): Sent {
  switch (outcome) {
    case 'taken':
      return { kind: 'sent', transaction }
    case 'refused':
    case 'unfunded':
      return NOT_TAKEN
    case 'unknown':
      return { kind: 'unknown', transaction }
  }
}

import type { OwnTransaction } from '../../ledger/entry.ts'
import type { Broadcast } from './broadcast.ts'
import type { Bid } from './fees.ts'
import type { SendResult, SignerBusy, TransactionRequest, WaitMode } from './transaction.ts'

/** A request in the queue of a signer. */
export interface Waiting {
  readonly request: TransactionRequest
  readonly mode: WaitMode
  readonly resolve: (result: SendResult | SignerBusy) => void
  readonly reject: (fault: unknown) => void
  /** When its check was passed outside of a batch: milliseconds since the epoch. */
  readonly checkedAt?: number
  /** How often another transaction turned out to hold its nonce. */
  readonly displaced: number
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

/** Signs and records; the nonce of one that cannot be recorded would be a gap, so those after it are signed anew. */
export async function persist(
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
      signed.map(({ ready: { request }, transaction }) => request.journal.record(transaction)),
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
export function nonceGaps(signed: readonly Signed[], outcomes: readonly Broadcast[]): readonly Signed[] {
  const highest = outcomes.lastIndexOf('taken')
  return signed.filter((_, place) => {
    const outcome = outcomes[place]
    return place < highest && (outcome === 'refused' || outcome === 'unfunded')
  })
}

/** Nobody is left afterwards. */
export function answer(waiting: readonly Waiting[], result: SendResult | SignerBusy): readonly [] {
  for (const { resolve } of waiting) resolve(result)
  return []
}

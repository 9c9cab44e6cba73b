import type { Ledger } from '../../ledger/ledger.ts'
import { JointCommit, CommitAbandonedError } from '../../ledger/joint-commit.ts'
import { batchOf, single } from './batch.ts'
import { keepBatch } from './kept-batch.ts'
import { type NonceState, allocate } from './nonces.ts'
import type { Submission, Signed } from './transaction.ts'

/**
 * Signs and records each transaction before it is sent. A transaction that cannot be recorded would leave a gap in
 * the nonces, so later ones are signed again.
 */
export async function persist(
  ledger: Ledger,
  submissions: readonly Submission[],
  nonces: NonceState,
  sign: (submission: Submission, nonce: number) => Signed,
): Promise<readonly Signed[]> {
  const recorded: Signed[] = []
  let rest = submissions
  while (rest.length > 0) {
    const free = allocate(nonces, recorded.length + rest.length).slice(recorded.length)
    const signed = rest.flatMap((each, place) => {
      const nonce = free[place]
      return nonce === undefined ? [] : [sign(each, nonce)]
    })
    const written = await Promise.all(signed.map((each) => record(ledger, each)))
    const gap = written.findIndex((outcome) => outcome !== 'recorded')
    const end = gap === -1 ? rest.length : gap
    const left = written[gap] ?? 'recorded'
    recorded.push(...signed.slice(0, end))
    rest = [...(left === 'recorded' ? [] : left), ...rest.slice(end + 1)]
  }
  return recorded
}

/** Rejects requests whose record fails; resolves to the remaining ones, which must be signed again. */
async function record(ledger: Ledger, signed: Signed): Promise<'recorded' | readonly Submission[]> {
  const { members, transaction } = signed
  const { raw: _raw, ...named } = transaction
  const joint = members.length === 1 ? undefined : new JointCommit(ledger, members.length)
  const dispatch = joint === undefined ? transaction : { ...named, members: members.length }
  try {
    if (joint !== undefined) await keepBatch(ledger, signed)
  } catch (fault) {
    for (const { reject } of members) reject(fault)
    return []
  }
  const written = await Promise.allSettled(
    members.map(async ({ request: { journal } }) => {
      try {
        await journal.record(dispatch, joint)
      } catch (fault) {
        joint?.abandon()
        throw fault
      }
    }),
  )
  const faults = written.map((each) => (each.status === 'rejected' ? [each.reason] : []))
  if (faults.every((fault) => fault.length === 0)) return 'recorded'
  const left = members.filter(({ reject }, place) => {
    const [fault] = faults[place] ?? []
    if (fault === undefined || fault instanceof CommitAbandonedError) return true
    reject(fault)
    return false
  })
  // When no member is at fault, each is sent alone to find the cause.
  return left.length < members.length ? batchOf(left) : left.map(single)
}

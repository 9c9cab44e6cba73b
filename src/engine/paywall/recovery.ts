import { cleanUp } from '../ledger/clean-up.ts'
import { LostClaim, takeOver, type Claim, type Desk } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import { payableUntil } from '../ledger/lifecycle.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { isRemembered, type Store } from './paywall.ts'
import { noteFailure } from './throttle.ts'

export interface RecoverySettings extends Desk {
  /** The ways to be paid that are spoken now. */
  readonly protocols: () => readonly Protocol[]
  /** What decides over the things an operation has stored; undefined when it stores nothing. */
  readonly storeOf: (operation: string) => Store | undefined
  readonly report: (fault: unknown) => void
}

/** Looked after beside each other: a payment that waits for its block must not hold up the others. */
const AT_ONCE = 20
/** Entries read from the ledger in one piece. */
const BATCH = 500

/**
 * Finishes what processes that have died, or did not know, have left: payments to be resolved by what the chain shows,
 * work to be committed or undone, answers whose time is over. Any number of processes may do it at the same time.
 *
 * Resolves to the number of entries it has found due.
 */
export async function recover(settings: RecoverySettings): Promise<number> {
  const entries = await settings.ledger.due('money', settings.now(), BATCH)
  const payments = entries.values()
  const [cleaned] = await Promise.all([
    cleanUp(settings),
    ...Array.from({ length: AT_ONCE }, () => tendAll(settings, payments)),
  ])
  return entries.length + cleaned
}

async function tendAll(settings: RecoverySettings, entries: Iterable<Entry>): Promise<void> {
  for (const entry of entries) await tend(settings, entry)
}

async function tend(settings: RecoverySettings, entry: Entry): Promise<void> {
  let claim: Claim | undefined
  try {
    claim = await takeOver(settings, entry)
    if (claim !== undefined) await tendClaim(settings, claim)
  } catch (fault) {
    // Another process is faster, or the store is away: the next round sees what is left.
    if (!(fault instanceof LostClaim)) settings.report(fault)
  } finally {
    claim?.putDown()
  }
}

async function tendClaim(settings: RecoverySettings, claim: Claim): Promise<void> {
  const { state, receipt, answer } = claim.entry
  if (receipt !== undefined) {
    // Work that was paid for and failed has left nothing worth keeping: it is done again.
    await decide(settings, claim, answer === undefined ? 'abort' : 'commit')
    const { prepared } = claim.entry
    if (prepared === undefined && !isRemembered(claim.entry, settings.now())) await claim.forget()
    else await claim.letGo()
    return
  }
  switch (state) {
    case 'reserved':
    case 'voided':
      await decide(settings, claim, 'abort')
      return claim.entry.prepared === undefined ? claim.drop() : claim.letGo()
    case 'fulfilled':
    case 'settling':
    case 'unknown':
    case 'settled':
    case 'sent':
      return resolve(settings, claim)
  }
}

async function resolve(settings: RecoverySettings, claim: Claim): Promise<void> {
  const { entry } = claim
  const protocol = settings.protocols().find(({ name }) => name === entry.protocol)
  if (protocol === undefined) return claim.letGo()
  const settlement = await protocol.resolve(entry)
  const { id, payer, answer } = entry
  const now = settings.now()
  if (settlement.kind === 'failed' && entry.dispatch !== undefined && answer !== undefined)
    await noteFailure(settings.ledger, payer, id, now).catch(settings.report)
  switch (settlement.kind) {
    case 'settled':
      await claim.settle(settlement.receipt)
      await decide(settings, claim, 'commit')
      return claim.letGo()
    case 'unknown':
      await claim.advance(entry.state === 'fulfilled' ? 'fulfilled' : 'unknown')
      return claim.letGo()
    case 'failed':
      // The payment may come again until it ends, and be charged then: the work is not done twice.
      if (answer !== undefined && now < payableUntil(entry)) return claim.shelve()
      await claim.void()
      await decide(settings, claim, 'abort')
      return claim.letGo()
  }
}

/** Tells the handler what became of the payment it has stored something for. */
async function decide(
  { storeOf, report, now }: RecoverySettings,
  claim: Claim,
  decision: 'commit' | 'abort',
): Promise<void> {
  const { id, operation, prepared, createdAt, redeliver } = claim.entry
  if (prepared === undefined) return
  const store = storeOf(operation)
  if (store === undefined) {
    // Another process, or the next revision, may have the operation.
    if (now() - createdAt < redeliver) return
    report(new Error(`${operation} is gone: what it stored for payment ${id} cannot be ${decision}ted`))
    await claim.unprepare()
    return
  }
  try {
    await store[decision](id)
  } catch (fault) {
    report(fault)
    return
  }
  await claim.unprepare()
}

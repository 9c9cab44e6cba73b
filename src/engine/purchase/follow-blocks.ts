import { Failure } from '../base/errors.ts'
import { LOOKS_GIVEN_UP_MS } from '../base/money-times.ts'
import { cleaned, commitEach } from '../ledger/clean-up.ts'
import { acquireExpired, LeaseLostError, type PaymentLease } from '../ledger/lease.ts'
import type { Change } from '../ledger/ledger.ts'
import { finalized, isLeased, nextCheckAt, nextLook } from '../ledger/payment-lifecycle.ts'
import type { BlockReference, PaymentRecord } from '../ledger/payment-record.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { BlockLook } from '../chains/evm/finality.ts'
import { conclude, resend, type RecoveryDeps } from './recovery.ts'

/** Most payments of one look; their blocks are asked for once each. */
const LOOKED_AT = 1_000
/** Payments whose block was undone, processed concurrently. */
const AT_ONCE = 50
/** Beyond every due time. */
const EVER = Number.MAX_SAFE_INTEGER

/**
 * Looks again at settled payments whose block is not final, single ones and members of batches alike, until it is. A
 * payment whose block was undone is carried out again. Any number of processes may do it at the same time.
 *
 * Resolves when each was looked at, to the work on those that were undone: it waits for new blocks, and the next look, in
 * which others are found that must be sent again before they expire, does not wait for it.
 *
 * `which`: those that are due, or at a start all, since the process that watched them may be dead.
 */
export async function followBlocks(
  deps: RecoveryDeps,
  which: 'due' | 'all',
): Promise<readonly Promise<void>[]> {
  const { ledger, now } = deps
  const records = await ledger.due('blocks', which === 'all' ? EVER : now(), LOOKED_AT)
  const undone: PaymentRecord[] = []
  for (const group of byScheme(records)) {
    const changes: Change[] = []
    const look = await lookAt(deps, group)
    for (const record of group) {
      const block = blockOf(record)
      if (block === undefined) continue
      const standing = look(block)
      if (standing.kind === 'undone' && !isGivenUp(record, now())) undone.push(record)
      // A change would take the payment from the process that works on it.
      else if (!isLeased(record, now())) {
        const progress = standing.kind === 'valid' ? standing.progress : undefined
        const lookAt = standing.kind === 'final' ? undefined : nextLook(record, progress, now())
        changes.push({ previous: record, next: lookedAt(record, lookAt, now()) })
      }
    }
    await commitEach(ledger, changes)
  }
  return undone.length === 0 ? [] : [carryOutAll(deps, undone)]
}

async function carryOutAll(deps: RecoveryDeps, undone: readonly PaymentRecord[]): Promise<void> {
  for (let first = 0; first < undone.length; first += AT_ONCE)
    await Promise.all(undone.slice(first, first + AT_ONCE).map((record) => carryOutAgain(deps, record)))
}

function byScheme(records: readonly PaymentRecord[]): Iterable<readonly PaymentRecord[]> {
  const groups = new Map<string, PaymentRecord[]>()
  for (const record of records) {
    const name = `${record.protocol} ${record.scheme} ${record.network}`
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [record])
    else group.push(record)
  }
  return groups.values()
}

async function lookAt({ protocols }: RecoveryDeps, group: readonly PaymentRecord[]): Promise<BlockLook> {
  const [first] = group
  const protocol = protocols().find(({ name }) => name === first?.protocol)
  if (first === undefined || protocol === undefined) return () => ({ kind: 'unknown' })
  const blocks = group.flatMap((record) => blockOf(record) ?? [])
  return protocol.lookAtBlocks(first, blocks)
}

/** A failure that nobody could confirm in a day counts as final. */
function isGivenUp({ receipt, createdAt }: PaymentRecord, now: number): boolean {
  return receipt === undefined && now - createdAt >= LOOKS_GIVEN_UP_MS
}

function blockOf({ receipt, failedIn }: PaymentRecord): BlockReference | undefined {
  return receipt === undefined ? failedIn : receipt.block
}

/** `lookAt`: the time of the next look; undefined when the block is final. */
function lookedAt(record: PaymentRecord, lookAt: number | undefined, now: number): PaymentRecord | undefined {
  if (lookAt === undefined && record.receipt !== undefined) return cleaned(finalized(record), now)
  const left = lookAt === undefined ? finalized(record) : { ...record, lookAt }
  const next = { ...left, updatedAt: now, version: record.version + 1 }
  return { ...next, due: nextCheckAt(next) }
}

async function carryOutAgain(deps: RecoveryDeps, record: PaymentRecord): Promise<void> {
  const protocol = deps.protocols().find(({ name }) => name === record.protocol)
  if (protocol === undefined) return
  const lease = await acquireExpired(deps, record).catch(deps.report)
  // The process that holds it may be dead, and the payment may expire before its lease does.
  if (lease === undefined)
    return record.receipt === undefined ? undefined : resend(deps, record).catch(deps.report)
  try {
    if (record.receipt === undefined) return await watchFailed(deps, protocol, lease)
    // It sends the same bytes again.
    const settlement = await protocol.resolve(record)
    if (settlement.kind === 'settled') {
      // The node that gave the receipt has not noticed that its block is gone, and nobody may have sent the payment again.
      if (settlement.receipt.block?.hash === record.receipt.block?.hash) await resend(deps, record)
      await lease.move(settlement.receipt)
      return await lease.release()
    }
    deps.report(
      new Failure('settlement_failed', `a reorganization has undone payment ${record.id}; it is sent again`),
    )
    await lease.undo()
    await conclude(deps, protocol, lease, settlement)
  } catch (fault) {
    if (!(fault instanceof LeaseLostError)) deps.report(fault)
  } finally {
    lease.stopRenewal()
  }
}

/** The block that showed a failure was undone, so what was sent may have been carried out since, or may be later. */
async function watchFailed(deps: RecoveryDeps, protocol: Protocol, lease: PaymentLease): Promise<void> {
  const settlement = await protocol.resolve(lease.record)
  if (settlement.kind !== 'unknown') return conclude(deps, protocol, lease, settlement)
  await lease.lookAgain()
  return lease.release()
}

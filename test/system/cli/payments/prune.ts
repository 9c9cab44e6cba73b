import { systemEvery } from '../../../../src/engine/base/every.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { reserve } from '../../../../src/engine/ledger/lease.ts'
import { cleanUp } from '../../../../src/engine/ledger/clean-up.ts'
import type { Purchase } from '../../../../src/engine/ledger/payment-record.ts'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { openRedisLedger } from '../../../../src/engine/ledger/redis/redis-ledger.ts'
import {
  HOUR,
  loseOutcome,
  MINUTE,
  parse,
  purchaseOf,
  receiptOf,
  sell,
  type Processing,
} from '../../../support/ledger-fixture.ts'
import { runLine, type Ran } from '../../../support/run-command.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'

const NOW = Date.now()
const OLD = NOW - 48 * HOUR

/** A place of payments that a command finds by its environment. */
interface Place {
  readonly variables: Readonly<Record<string, string>>
  readonly open: () => Promise<Ledger>
}

async function book(
  ledger: Ledger,
  at: number,
  changes: Partial<Purchase>,
  work?: Processing,
): Promise<string> {
  const purchase = purchaseOf({ validBefore: at + MINUTE, redeliver: HOUR, ...changes })
  const reservation = await reserve(
    { ledger, owner: 'a server', now: () => at, every: systemEvery },
    purchase,
  )
  if (reservation.kind !== 'reserved') throw new Error(reservation.record.state)
  await (work ?? sell(receiptOf(purchase)))(reservation.lease)
  reservation.lease.stopRenewal()
  return paymentId(purchase.key)
}

async function fill({ open }: Place): Promise<{ readonly finished: string[]; readonly kept: string[] }> {
  const ledger = await open()
  const upfront = purchaseOf({ settle: 'upfront' })
  const settle: Processing = (lease) => lease.settle(receiptOf(upfront))
  const finished = await Promise.all(Array.from({ length: 250 }, (_, n) => book(ledger, OLD + n, {})))
  const kept = [
    await book(ledger, OLD, { redeliver: 72 * HOUR }),
    await book(ledger, OLD, { validBefore: NOW + HOUR }),
    await book(ledger, OLD, { settle: 'upfront' }, settle),
    await book(ledger, OLD, {}, loseOutcome('unknown')),
    await book(ledger, OLD, {}, loseOutcome('settling')),
    await book(ledger, NOW - 2 * HOUR, {}),
  ]
  await cleanUp({ ledger, now: () => NOW })
  await ledger.close()
  return { finished, kept }
}

async function stored({ open }: Place, ids: readonly string[]): Promise<number> {
  const ledger = await open()
  const found = await Promise.all(ids.map((id) => ledger.find(id)))
  await ledger.close()
  return found.filter((record) => record !== undefined).length
}

async function testPrune(t: Test, place: Place): Promise<void> {
  const { finished, kept } = await fill(place)
  const prune = async (...words: string[]): Promise<Ran> => {
    const ran = await runLine(['payments', 'prune', '--before', '24h', ...words], place)
    t.equal(ran.code, 0, ran.err)
    return ran
  }
  const { out: planned } = await prune('--dry-run')
  const said =
    /^would delete 250 payment records from before (\S+Z): (\d+) bytes\n5 payment records as old: kept,/
  t.match(planned, said)
  const bytes = Number(said.exec(planned)?.[2])
  t.ok(bytes > 250 * 400 && bytes < 250 * 1_500, `${bytes} bytes`)
  t.match(parse((await prune('--dry-run', '--json')).out), { dry_run: true, records: 250, bytes, kept: 5 })
  t.equal(await stored(place, [...finished, ...kept]), 256, 'a dry run deletes nothing')

  t.match(parse((await prune('--json')).out), { dry_run: false, records: 250, bytes, kept: 5 })
  t.equal(await stored(place, finished), 0)
  t.equal(await stored(place, kept), 6)
  t.match((await prune()).out, /^deleted 0 payment records /)
}

t.test('prune deletes exactly the finished payments of an embedded ledger', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-prune-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const open = (): Promise<Ledger> => openLmdbLedger(join(dataDir, 'ledger'))
  await testPrune(t, { variables: { DATA_DIR: dataDir }, open })
})

t.test('prune deletes exactly the finished payments of a ledger in Redis', async (t) => {
  const absence = redisAbsence()
  if (absence !== undefined) return t.plan(0, absence)
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const open = (): Promise<Ledger> => openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 })
  await testPrune(t, { variables: { REDIS_URL: redis.url }, open })
})

t.test('prune requires a time in the past', async (t) => {
  const prune = (...words: string[]): Promise<Ran> => runLine(['payments', 'prune', ...words])
  t.match(await prune(), { code: 64, err: /--before is missing: name a time, such as 90d or 2026-10-01/ })
  t.match(await prune('--before', '2999-01-01'), { code: 64, err: /--before 2999-01-01 is in the future/ })
  t.match(await prune('--before', 'soon'), { code: 64, err: /--before takes how long ago or a date/ })
})

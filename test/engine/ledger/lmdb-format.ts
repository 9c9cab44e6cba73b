import t, { type Test } from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import type { Entry } from '../../../src/engine/ledger/entry.ts'
import { buyerName, paymentId } from '../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb.ts'
import { nextEntry } from '../../support/entry.ts'
import { runTogether, startWorker } from '../../support/worker.ts'

const NOW = 1_800_000_000_000
const DAY = 86_400_000

/** A record as format 1 had it, written down: no code of today makes one. */
function record1(key: string, changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    key,
    protocol: 'x402',
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payer: '0xB0',
    payee: '0xa0',
    seal: 'what was signed',
    amount: '5000',
    validBefore: NOW + 60_000,
    operation: '/paid/ping',
    digest: 'the arguments',
    revision: 'r1',
    token: 'shown to the buyer only',
    id: paymentId(key),
    state: 'reserved',
    owner: '17-a',
    leaseUntil: NOW + 10_000,
    attempts: 1,
    createdAt: NOW,
    updatedAt: NOW,
    version: 1,
    ...changes,
  }
}

const RECEIPT = { transaction: '0x01', network: 'eip155:84532', payer: '0xB0', amount: '5000' }

async function newStore1(t: Test, records: readonly Record<string, unknown>[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-format-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const root = open({ path: directory, encoding: 'json', maxDbs: 8 })
  await root.openDB({ name: 'meta', encoding: 'json' }).put('format', 1)
  const payments = root.openDB({ name: 'payments', encoding: 'json' })
  await root.transaction(() => {
    for (const record of records) void payments.put(String(record['id']), record)
  })
  const lease = { owner: '', until: 0, fence: 4, left: { value: 7, at: NOW } }
  await root.openDB({ name: 'leases', encoding: 'json' }).put('signer', lease)
  await root.close()
  return directory
}

t.test('payments of format 1 are all there after an update, as they were, with what is new', async (t) => {
  const transaction = { hash: '0x01', raw: '0x02', signer: '0x03', nonce: 4 }
  const answer = { kind: 'json', value: { a: 1 } }
  const settled = { state: 'settled', answer, receipt: RECEIPT, settledAt: NOW + 1, createdAt: NOW - 1 }
  const directory = await newStore1(t, [
    record1('reserved'),
    record1('settling', { state: 'settling', answer, transaction, createdAt: NOW + 2 }),
    record1('settled', { ...settled, transaction: { hash: '0x01', signer: '0x03', nonce: 4 } }),
  ])
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const buyer = buyerName('0xb0', '/paid/ping', 'the arguments')
  const added = { flow: 'authorization', redeliver: DAY, buyer }
  const reserved = { ...record1('reserved'), ...added, due: NOW + 10_000 }
  t.strictSame(await ledger.get('reserved'), reserved)
  t.strictSame(await ledger.get('settling'), {
    ...record1('settling', { state: 'settling', answer, createdAt: NOW + 2 }),
    ...added,
    dispatch: { kind: 'own', ...transaction },
    due: NOW + 10_000,
  })
  t.match(await ledger.get('settled'), {
    ...settled,
    ...added,
    dispatch: { kind: 'own', hash: '0x01', signer: '0x03', nonce: 4 },
    due: NOW + 1 + DAY,
  })
  const keys = (list: readonly Entry[]): string[] => list.map(({ key }) => key)
  t.strictSame(keys(await ledger.due(NOW + 10_000, 10)).sort(), ['reserved', 'settling'])
  t.strictSame(keys(await ledger.due(NOW + 2 * DAY, 10)).at(-1), 'settled')
  t.strictSame(keys(await ledger.bought(buyer, NOW)), ['settling', 'reserved'])
  const listed: string[] = []
  for await (const { key } of ledger.entries()) listed.push(key)
  t.strictSame(listed, ['settled', 'reserved', 'settling'])
  t.match(await ledger.lease('signer', 'me', NOW, NOW + 1), { fence: 5, left: { value: 7 } })

  const entry = await ledger.get('reserved')
  if (entry === undefined) throw new Error('the payment is lost')
  const next = nextEntry(entry, { due: undefined })
  t.equal(await ledger.replace(entry, next), true, 'and they go on from there')
  t.strictSame(keys(await ledger.due(NOW + 10_000, 10)), ['settling'])
  t.equal(await ledger.remove(next), true)
})

t.test('an update happens once: the store is of format 2 from then on', async (t) => {
  const directory = await newStore1(t, [record1('one')])
  const first = await openLmdbLedger(directory)
  const entry = await first.get('one')
  if (entry === undefined) throw new Error('the payment is lost')
  await first.replace(entry, nextEntry(entry, { flow: 'upfront', redeliver: 5 }))
  await first.close()
  const second = await openLmdbLedger(directory)
  t.teardown(() => second.close())
  t.match(await second.get('one'), { flow: 'upfront', redeliver: 5, version: 2 })
})

t.test('two processes that update a store at the same time lose nothing', async (t) => {
  const directory = await newStore1(
    t,
    Array.from({ length: 500 }, (_, number) => record1(`x402:${number}`)),
  )
  t.strictSame(await runTogether(2, ['lmdb', directory, 'insert', 'x402:7']), ['0', '0'])
  await checkAll(t, directory, 500)
})

t.test('a process that is killed in the middle of an update loses nothing', async (t) => {
  const count = 20_000
  const text = 'a'.repeat(500)
  const directory = await newStore1(
    t,
    Array.from({ length: count }, (_, number) => record1(`x402:${number}`, { digest: text })),
  )
  for (const patience of [0, 20, 60, 150, 400]) {
    const worker = startWorker(['lmdb', directory, 'open', ''])
    t.equal(await worker.line(), 'opening')
    await new Promise((resolve) => setTimeout(resolve, patience))
    await worker.kill()
  }
  await checkAll(t, directory, count)
})

async function checkAll(t: Test, directory: string, count: number): Promise<void> {
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  let listed = 0
  for await (const { flow } of ledger.entries()) if (flow === 'authorization') listed += 1
  t.equal(listed, count)
  t.equal((await ledger.due(NOW + 10_000, 2 * count)).length, count)
}

/**
 * npm run growth [-- --records 1000000]
 *
 * What delivered payments take in each ledger, and whether look-ups take longer when there are many of them.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { register } from 'tsx/esm/api'
import { median, printTable, show } from './figures.mjs'

register()
const { openLmdbLedger } = await import('../../src/engine/ledger/lmdb/lmdb-ledger.ts')
const { openRedisLedger } = await import('../../src/engine/ledger/redis/redis-ledger.ts')
const { closed, newRecord, nextCheckAt, buyerKeyOf } =
  await import('../../src/engine/ledger/payment-lifecycle.ts')
const { redisAbsence, startRedis } = await import('../support/redis.ts')

const { values } = parseArgs({ options: { records: { type: 'string', default: '1000000' } } })
const SIZES = [1_000, Number(values.records)]
const AT_ONCE = 500
const LOOKS = 2_000
const START = Date.UTC(2026, 0, 1)
const ASSET = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'

const folder = mkdtempSync(join(tmpdir(), 'ratecard-growth-'))
try {
  const lmdb = await openLmdbLedger(join(folder, 'lmdb'))
  const file = join(folder, 'lmdb', 'data.mdb')
  report(await measure(lmdb, 'LMDB', async () => statSync(file).size))
  await lmdb.close()
  if (redisAbsence() === undefined) {
    const redis = await startRedis()
    const used = async () => Number(/used_memory:(\d+)/.exec(await redis.command('INFO', 'memory'))?.[1])
    const ledger = await openRedisLedger({ url: `${redis.url}/0`, settings: 'checked', replicas: 0 })
    report(await measure(ledger, 'Redis', used))
    await ledger.close()
    await redis.stop()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
function report(rows) {
  printTable(
    'Delivered payments whose answers have expired',
    ['', 'records', 'bytes each', 'get, µs', 'of a buyer, µs', 'due, µs'],
    rows,
  )
}

async function measure(ledger, name, size) {
  const empty = await size()
  const keys = []
  const found = []
  for (const goal of SIZES) {
    while (keys.length < goal) {
      const batch = Array.from({ length: Math.min(AT_ONCE, goal - keys.length) }, (_, place) =>
        delivered(keys.length + place),
      )
      await Promise.all(batch.map((entry) => ledger.insert(entry)))
      keys.push(...batch.map(({ key, buyerKey }) => ({ key, buyerKey })))
    }
    const pick = () => keys[Math.floor(Math.random() * keys.length)]
    found.push([
      name,
      String(goal),
      show(((await size()) - empty) / goal, 0),
      await time(() => ledger.get(pick().key)),
      await time(() => ledger.undelivered(pick().buyerKey, START, 20)),
      await time(() => ledger.due('money', Date.now(), 50)),
    ])
  }
  return found
}

/** Median of single look-ups. */
async function time(look) {
  const times = []
  for (let count = 0; count < LOOKS; count += 1) {
    const before = performance.now()
    await look()
    times.push((performance.now() - before) * 1_000)
  }
  return show(median(times), 0)
}

/** As it remains when its answer is no longer kept. */
function delivered(number) {
  const hash = (text) => createHash('sha256').update(`${text} ${number}`)
  const payer = `0x${hash('payer').digest('hex').slice(0, 40)}`
  const digest = hash('arguments').digest('base64url')
  const purchase = {
    key: `x402:exact:eip155:8453:${ASSET}:${payer}:0x${hash('nonce').digest('hex')}`,
    protocol: 'x402',
    scheme: 'exact',
    network: 'eip155:8453',
    asset: ASSET,
    payer,
    payee: '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
    authorizationHash: '',
    authorizedAmount: '10000',
    amount: '10000',
    validBefore: START + number * 1_000 + 60_000,
    operation: '/paid/game/price-history',
    digest,
    revision: 'r1',
    redeliveryToken: undefined,
    settle: 'after',
    redeliver: 86_400_000,
    buyerKey: buyerKeyOf(payer, '/paid/game/price-history', digest),
    identifier: undefined,
  }
  const at = START + number * 1_000
  const transaction = `0x${hash('transaction').digest('hex')}`
  const receipt = { transaction, network: 'eip155:8453', payer, amount: '10000', gasCost: '812345678901' }
  const signer = '0x00000000000000000000000000000000000000a0'
  const dispatch = { kind: 'own', hash: transaction, signer, nonce: number, members: 12 }
  const record = closed({
    ...newRecord(purchase, 'a process of this machine', at, 0),
    state: 'sent',
    receipt,
    dispatch,
    settledAt: at + 900,
    version: 7,
  })
  return { ...record, due: nextCheckAt(record) }
}

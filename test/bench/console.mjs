/**
 * npm run console [-- --records 1000000 --rounds 5]
 *
 * How long each view of the console takes on a ledger of so many payments, and how long sales wait meanwhile: what callers
 * see on this machine, and how long the service itself has worked without a pause, whatever else the processor did.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { register } from 'tsx/esm/api'
import { printTable, show, showRange } from './figures.mjs'
import { LAG_PROBE, lagOf } from './servers/event-loop.mjs'

register()
const { openLmdbLedger } = await import('../../src/engine/ledger/lmdb/lmdb-ledger.ts')
const { closed, newRecord, nextCheckAt, buyerKeyOf } =
  await import('../../src/engine/ledger/payment-lifecycle.ts')
const { stockFetch } = await import('../support/payment.ts')

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    fill: { type: 'string' },
  },
})
const RECORDS = Number(values.records)
const AT_ONCE = 2_000
const SPAN_MS = 89 * 86_400_000
const BUYERS = 50_000
const NO_VIEW = 'none'
/** Sold before the measurement, so that all code has run. */
const OWN_SALES = 10
const ROUTES = ['ping', 'util/workday', 'gamestore/top-sellers', 'util/json', 'util/citation']
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const WARM_UP_MS = 10_000
/** How long callers go on asking after a view was opened: some views go on counting after their answer. */
const AFTER_MS = 1_000

if (values.fill !== undefined) {
  await fill(values.fill)
  process.exit()
}
const folder = mkdtempSync(join(tmpdir(), 'ratecard-console-'))
try {
  // The ledger of a sandbox belongs to chains that end with it: it is filled while they run.
  const server = await serve()
  await fillInAnotherProcess()
  const { evm } = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'))
  const pay = stockFetch(evm.payerKey)
  const entered = await fetch(server.entrance)
  const cookie = entered.headers.get('set-cookie').split(';')[0]
  const origin = new URL(server.entrance).origin
  const sell = async () => {
    const began = performance.now()
    const answer = await pay(`${server.url}/paid/ping`)
    await answer.text()
    if (answer.status !== 200) throw new Error(`a sale answers ${answer.status}`)
    return performance.now() - began
  }
  /** A request that is answered without the ledger waits only for the process. */
  const ask = async () => {
    const began = performance.now()
    await (await fetch(`${server.url}/paid/ping`)).text()
    return performance.now() - began
  }
  for (let count = 0; count < OWN_SALES; count += 1) await sell()
  // V8 has shrunk the heap of a process that idled while the ledger was filled, and finishes that first.
  for (const end = performance.now() + WARM_UP_MS; performance.now() < end;) await ask()
  const payer = payerOf(1)
  const paths = [
    '/revenue?days=90',
    '/',
    '/revenue?days=1',
    '/lost-sales?days=90',
    '/payments',
    `/payments?q=${payer}`,
    `/payments?q=0x${hash('transaction', 77).digest('hex')}`,
    '/routes',
    '/buyers?days=90',
    '/catalog',
    '/health',
  ]
  const open = async (path) => {
    if (path === NO_VIEW) return ''
    const answer = await fetch(origin + path, { headers: { cookie } })
    if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}`)
    return answer.text()
  }
  /** Opens a view while callers ask. */
  const measure = async (path) => {
    await server.lag()
    let longest = 0
    let isOpen = true
    const asking = (async () => {
      while (isOpen) longest = Math.max(longest, await ask())
    })()
    const began = performance.now()
    const text = await open(path)
    const ms = performance.now() - began
    await new Promise((resolve) => setTimeout(resolve, AFTER_MS))
    isOpen = false
    await asking
    return { text, ms, longest, work: (await server.lag()).own.max }
  }
  const views = new Map([...paths, NO_VIEW].map((path) => [path, []]))
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const path of paths) {
      const runs = views.get(path)
      do runs.push(await measure(path))
      while (runs.at(-1).text.includes('being counted'))
      // As often as a view is opened, none is: the longest of many times is longer than that of a few.
      views.get(NO_VIEW).push(await measure(NO_VIEW))
      const shown = Number(/([\d,]+) sales/.exec(runs.at(-1).text)?.[1]?.replaceAll(',', ''))
      if (path === '/revenue?days=90' && shown !== RECORDS + OWN_SALES)
        throw new Error(`the console knows ${shown} of ${RECORDS + OWN_SALES} payments`)
    }
  }
  const rows = Array.from(views, ([path, runs]) => [
    path.slice(0, 30),
    path === NO_VIEW ? '' : show(runs[0].ms, 0),
    path === NO_VIEW || runs.length === 1 ? '' : show(Math.max(...runs.slice(1).map(({ ms }) => ms)), 0),
    showRange(
      runs.map(({ longest }) => longest),
      1,
    ),
    showRange(
      runs.map(({ work }) => work),
      1,
    ),
  ])
  printTable(
    `Views on ${RECORDS} payments: medians of ${values.rounds} rounds, with their range`,
    ['view', 'first, ms', 'then, ms', 'longest 402 meanwhile, ms', 'longest work without a pause, ms'],
    rows,
  )
  await server.stop()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function serve() {
  const child = spawn(
    process.execPath,
    [...LAG_PROBE, MAIN, 'serve', '--sandbox', '--offline', '--port', '0', '--data-dir', folder],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  while (!/^listening on/m.test(output) || !output.includes('console: ')) {
    if (child.exitCode !== null) throw new Error(output)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const url = /^listening on (\S+)/m.exec(output)[1].replace('127.0.0.1', 'localhost')
  return {
    url,
    lag: () => lagOf(child),
    entrance: /console: (http[^"\s]+)/.exec(output)[1],
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** What it leaves in memory would delay the requests that are measured. */
async function fillInAnotherProcess() {
  const args = ['--records', values.records, '--fill', join(folder, 'sandbox', 'ledger')]
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error('the ledger was not filled')
}

async function fill(directory) {
  const ledger = await openLmdbLedger(directory)
  const now = Date.now()
  const began = performance.now()
  for (let number = 0; number < RECORDS; number += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, RECORDS - number) }, (_, place) =>
      delivered(number + place, now),
    )
    await Promise.all(batch.map((entry) => ledger.insert(entry)))
  }
  console.log(`${RECORDS} payments stored in ${show((performance.now() - began) / 1_000, 0)} s`)
  await ledger.close()
}

function hash(text, number) {
  return createHash('sha256').update(`${text} ${number}`)
}

function payerOf(number) {
  return `0x${hash('payer', number % BUYERS)
    .digest('hex')
    .slice(0, 40)}`
}

function delivered(number, now) {
  const payer = payerOf(number)
  const digest = hash('arguments', number).digest('base64url')
  const operation = ROUTES[number % ROUTES.length]
  const at = now - SPAN_MS + Math.floor((number / RECORDS) * SPAN_MS)
  const purchase = {
    key: `x402:exact:eip155:84532:${ASSET}:${payer}:0x${hash('nonce', number).digest('hex')}`,
    protocol: 'x402',
    scheme: 'exact',
    network: 'eip155:84532',
    asset: ASSET,
    payer,
    payee: '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
    authorizationHash: '',
    authorizedAmount: '10000',
    amount: '10000',
    validBefore: at + 60_000,
    operation,
    digest,
    revision: 'r1',
    redeliveryToken: undefined,
    settle: 'after',
    redeliver: 86_400_000,
    buyerKey: buyerKeyOf(payer, operation, digest),
    identifier: undefined,
  }
  const transaction = `0x${hash('transaction', number).digest('hex')}`
  const receipt = { transaction, network: 'eip155:84532', payer, amount: '10000', gasCost: '812345678901' }
  const signer = '0x00000000000000000000000000000000000000a0'
  const dispatch = { kind: 'own', hash: transaction, signer, nonce: number, members: 12 }
  const sent = {
    ...newRecord(purchase, 'owner', at, 0),
    state: 'sent',
    settledAt: at + 400,
    deliveredAt: at + 2_500,
  }
  const record = closed({ ...sent, dispatch, receipt })
  return { ...record, due: nextCheckAt(record) }
}

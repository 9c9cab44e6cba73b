/**
 * npm run console [-- --records 1000000]
 *
 * How long each view of the console takes on a ledger of so many payments, and how long sales wait meanwhile.
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
import { printTable, show } from './figures.mjs'

register()
const { openLmdbLedger } = await import('../../src/engine/ledger/lmdb/lmdb-ledger.ts')
const { closed, newRecord, nextCheckAt, buyerKeyOf } =
  await import('../../src/engine/ledger/payment-lifecycle.ts')
const { stockFetch } = await import('../support/payment.ts')

const { values } = parseArgs({
  options: { records: { type: 'string', default: '1000000' }, fill: { type: 'string' } },
})
const RECORDS = Number(values.records)
const AT_ONCE = 2_000
const SPAN_MS = 89 * 86_400_000
const BUYERS = 50_000
/** Sold before the measurement, so that all code has run. */
const OWN_SALES = 10
const ROUTES = ['ping', 'util/workday', 'gamestore/top-sellers', 'util/json', 'util/citation']
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

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
  const alone = []
  for (let count = 0; count < 300; count += 1) alone.push(await ask())
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
  const rows = []
  for (const path of paths) {
    const times = []
    let longest = 0
    let isCounting = true
    for (let count = 0; count < 3 || isCounting; count += 1) {
      let isOpen = true
      const waiting = (async () => {
        while (isOpen) longest = Math.max(longest, await ask())
      })()
      const began = performance.now()
      const answer = await fetch(origin + path, { headers: { cookie } })
      const text = await answer.text()
      times.push(performance.now() - began)
      if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}`)
      isCounting = text.includes('being counted')
      // What is counted in the background goes on.
      await new Promise((resolve) => setTimeout(resolve, 500))
      isOpen = false
      await waiting
      const shown = Number(/([\d,]+) sales/.exec(text)?.[1]?.replaceAll(',', ''))
      if (path === '/revenue?days=90' && shown !== RECORDS + OWN_SALES)
        throw new Error(`the console knows ${shown} of ${RECORDS + OWN_SALES} payments`)
    }
    rows.push([path.slice(0, 30), show(times[0], 0), show(Math.max(...times.slice(1)), 0), show(longest, 1)])
  }
  rows.push(['none', '', '', show(Math.max(...alone), 1)])
  printTable(
    `Views on ${RECORDS} payments`,
    ['view', 'first, ms', 'then, ms', 'longest 402 meanwhile, ms'],
    rows,
  )
  await server.stop()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function serve() {
  const child = spawn(
    process.execPath,
    [MAIN, 'serve', '--sandbox', '--offline', '--port', '0', '--data-dir', folder],
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

import t, { type Test } from 'tap'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { startBase } from '../../support/base-chain.ts'
import { makeRecord } from '../../support/payment-records.ts'
import { addressOf, randomKey, stockFetch } from '../../support/payment.ts'
import { MAIN, nodeCommand, startServer, type RunningServer } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'
import { dial } from '../../support/http.ts'
import { until } from '../../support/until.ts'

/** Times that a handler throws late, four at once: a few in the suite, more by `npm run crash`. */
const LATE_THROWS = process.env['CRASH'] === 'full' ? 20 : 8

/** A source that answers when it is told to, and shows when it is asked. */
async function gate(t: Test): Promise<{ url: string; asked: Promise<unknown>; open: () => void }> {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const server = createServer((_, response) => {
    void opened.then(() =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"worth":"it"}'),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked: once(server, 'request'), open: () => open() }
}

async function startGated(t: Test, url: string): Promise<RunningServer> {
  const shop = writeShop(t, `  /gated: { price: free, upstream: '${url}', summary: Waits, timeout: 60s }\n`)
  const server = await startServer({ args: ['--sandbox', '--catalog', shop.catalog] })
  t.teardown(() => server.stop())
  return server
}

function chainOf(dataDir: string): string {
  const state = JSON.parse(readFileSync(join(dataDir, 'sandbox', 'state.json'), 'utf8')) as {
    evm: { rpcUrl: string }
  }
  return state.evm.rpcUrl
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

/** What keeps the chain sees the end of a killed process a moment later. */
async function isGone(t: Test, url: string): Promise<void> {
  const ask = (): Promise<boolean> =>
    fetch(url, { method: 'POST' }).then(
      () => false,
      () => true,
    )
  await until('the chain is gone', ask)
  t.pass('the chain is gone')
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(
    `${signal} lets the request in flight finish, and frees the port, the store and the chain`,
    async (t) => {
      const source = await gate(t)
      const server = await startGated(t, source.url)
      const chain = chainOf(server.dataDir)
      await fetch(`${server.url}/health`)
      const silent = await dial(server.url)
      const answer = fetch(`${server.url}/gated`)
      await source.asked
      server.process.kill(signal)
      await server.said(/stopping: requests in flight are finished first/)
      await t.rejects(fetch(`${server.url}/health`), 'nothing new is taken')
      source.open()
      t.equal(await (await answer).text(), '{"worth":"it"}')
      t.equal(await exitOf(server.process), 0)
      await isGone(t, chain)
      t.notMatch(server.output(), /unexpected|Unhandled|Warning|Error/)
      silent.destroy()
    },
  )
}

t.test('a second signal stops at once', async (t) => {
  const source = await gate(t)
  const server = await startGated(t, source.url)
  const chain = chainOf(server.dataDir)
  const answer = fetch(`${server.url}/gated`)
  answer.catch(() => undefined)
  await source.asked
  server.process.kill('SIGTERM')
  await server.said(/stopping/)
  server.process.kill('SIGTERM')
  t.equal(await exitOf(server.process), null)
  t.equal(server.process.signalCode, 'SIGKILL')
  await t.rejects(answer)
  await isGone(t, chain)
})

t.test('a second signal stops at once while payments are written', async (t) => {
  const directory = t.testdir()
  const program = fileURLToPath(new URL('../../fixtures/ledger/writing.ts', import.meta.url))
  for (let round = 0; round < 5; round += 1) {
    const child = spawn(process.execPath, ['--import', 'tsx', program, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const closed = once(child, 'close')
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    await once(child.stdout, 'data')
    child.kill('SIGTERM')
    t.strictSame(await Promise.race([closed, delay(10_000, 'it hangs', { ref: false })]), [null, 'SIGKILL'])
    child.kill('SIGKILL')
    const ledger = await openLmdbLedger(directory)
    t.equal(
      await ledger.insert(makeRecord(`x402:next${round}`)),
      undefined,
      'the next process takes payments',
    )
    await ledger.close()
  }
})

t.test('stops its chain when a start is interrupted', async (t) => {
  const data = t.testdir()
  const child = spawn(
    ...nodeCommand([MAIN, 'serve', '--sandbox', '--offline', '--port', '0', '--data-dir', data]),
    {
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8')
  })
  // The chain is being started.
  while (!existsSync(join(data, 'sandbox', 'lock'))) await new Promise((resolve) => setTimeout(resolve, 2))
  child.kill('SIGTERM')
  t.equal(await exitOf(child), 0)
  await isGone(t, chainOf(data))
  t.equal(existsSync(join(data, 'sandbox', 'lock')), false)
  t.notMatch(said, /Error|unexpected/)
})

for (const [kind, statement] of [
  ['throws', "throw new Error('late mistake')"],
  ['rejects', "void Promise.reject(new Error('late mistake'))"],
] as const) {
  t.test(`answers, exits with the reason and releases the store when a handler ${kind} late`, async (t) => {
    const shop = writeShop(t, '  /late: { price: free, handler: late, summary: Fails late }\n')
    writeFileSync(
      join(shop.handlers, 'index.js'),
      `export const handlers = {
        late: async () => {
          const thrown = new Promise((resolve) => process.once('uncaughtException', resolve))
          setTimeout(() => { ${statement} }, 10)
          await thrown
          return { source: [{ name: 'computed' }], body: { a: 'b' } }
        },
      }`,
    )
    const args = ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers]
    const server = await startServer({ args })
    t.teardown(() => server.stop())
    const chain = chainOf(server.dataDir)
    const closed = once(server.process, 'close')
    t.equal((await fetch(`${server.url}/late`)).status, 200, 'what is in flight is answered')
    t.strictSame(await closed, [1, null], 'it ends by itself')
    t.match(server.output(), /^(uncaught error|unhandled rejection): Error: late mistake\n/m)
    await isGone(t, chain)
    const [ledger] = readdirSync(join(server.dataDir, 'sandbox')).filter((name) => name.startsWith('ledger'))
    const other = await openLmdbLedger(join(server.dataDir, 'sandbox', ledger ?? 'ledger'))
    t.teardown(() => other.close())
    t.equal(await other.insert(makeRecord('x402:next')), undefined, 'the next process takes payments')
  })
}

t.test('exits every time that a handler throws late while payments are written', async (t) => {
  const chain = await startBase()
  t.teardown(() => chain.stop())
  const shop = writeShop(t, '  /paid/late: { price: 0.01, handler: late, summary: Fails late }\n')
  writeFileSync(
    join(shop.handlers, 'index.js'),
    `export const handlers = {
      late: async () => {
        setTimeout(() => { throw new Error('late mistake') }, 10)
        return { source: [{ name: 'computed' }], body: { a: 'b' } }
      },
    }`,
  )
  const payers = [randomKey(), randomKey(), randomKey()]
  for (const key of payers) await chain.mint(addressOf(key), 1_000_000n)
  const attempt = async (): Promise<void> => {
    const signerKey = randomKey()
    await chain.setGas(addressOf(signerKey), 10n ** 18n)
    const server = await startServer({
      args: ['--catalog', shop.catalog, '--handlers', shop.handlers],
      env: {
        HOST: '127.0.0.1',
        PAY_TO: addressOf(randomKey()),
        SETTLER_PRIVATE_KEY: signerKey,
        RPC_URL_8453: chain.rpcUrl,
      },
    })
    t.teardown(() => server.stop())
    const closed = once(server.process, 'close')
    for (const key of payers) stockFetch(key)(`${server.url}/paid/late`).catch(() => undefined)
    t.strictSame(await closed, [1, null], 'it ends by itself')
    t.match(server.output(), /^uncaught error: Error: late mistake\n/m)
    const ledger = await openLmdbLedger(join(server.dataDir, 'ledger'))
    t.equal(await ledger.insert(makeRecord('x402:next')), undefined, 'the next process takes payments')
    await ledger.close()
  }
  for (let round = 0; round < LATE_THROWS / 4; round += 1)
    await Promise.all([attempt(), attempt(), attempt(), attempt()])
})

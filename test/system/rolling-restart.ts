import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { onchainClient, startBase } from '../support/base-chain.ts'
import { writeShop } from '../support/catalogs.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import {
  freePort,
  proxyAbsence,
  startCaddy,
  startNginx,
  type ReverseProxy,
} from '../support/reverse-proxy.ts'
import { startServer, type RunningServer } from '../support/server.ts'

/** Restarts behind each proxy; `RESTARTS=10` for a longer look. */
const RESTARTS = Number(process.env['RESTARTS'] ?? 3)
const BUYERS = 6
const BETWEEN_MS = 2_000
/** Of a busy machine, for each restart. */
const RESTART_MS = 100_000

t.setTimeout(2 * RESTARTS * RESTART_MS)

const chain = await startBase()
t.teardown(() => chain.stop())

const ROUTES = `  /paid/greet: { price: 0.001, handler: greet, summary: Greets, parameters: { name: { type: string, example: Ada } } }
  POST /paid/greet: { price: 0.001, handler: greet, summary: Greets, parameters: { name: { type: string, example: Ada } } }
`

interface Outcome {
  answered: number
  readonly failures: string[]
}

/** Buys by GET and POST in turns until it is stopped. */
async function buyOn(url: string, key: `0x${string}`, signal: AbortSignal, outcome: Outcome): Promise<void> {
  const pay = stockFetch(key)
  for (let n = 0; !signal.aborted; n += 1) {
    const isPost = n % 2 === 1
    const headers = { 'Content-Type': 'application/json' }
    const init = isPost ? { method: 'POST', headers, body: JSON.stringify({ name: `n${n}` }) } : {}
    try {
      const answer = await pay(`${url}/paid/greet${isPost ? '' : `?name=n${n}`}`, init)
      const text = await answer.text()
      if (answer.status === 200) outcome.answered += 1
      else outcome.failures.push(`${init.method ?? 'GET'} ${answer.status} ${text.slice(0, 300)}`)
    } catch (fault) {
      outcome.failures.push(`${init.method ?? 'GET'} ${String(fault)}`)
    }
  }
}

async function restartUnderLoad(
  t: Test,
  startProxy: (port: number, upstreams: readonly number[]) => Promise<ReverseProxy>,
): Promise<void> {
  const shop = writeShop(t, ROUTES)
  const [proxyPort, ...ports] = [await freePort(), await freePort(), await freePort()]
  const [signerKey, payTo] = [randomKey(), addressOf(randomKey())]
  await chain.setGas(addressOf(signerKey), 10n ** 18n)
  const start = (port: number): Promise<RunningServer> =>
    startServer({
      args: ['--catalog', shop.catalog, '--handlers', shop.handlers, '--port', String(port)],
      dataDir: join(shop.directory, 'data'),
      env: {
        HOST: '127.0.0.1',
        BASE_URL: `http://127.0.0.1:${proxyPort}`,
        TRUST_PROXY: '1',
        PAY_TO: payTo,
        SETTLER_PRIVATE_KEY: signerKey,
        RPC_URL_8453: chain.rpcUrl,
        DRAIN_SECONDS: '4',
      },
    })
  const servers = new Map<number, RunningServer>()
  for (const port of ports) servers.set(port, await start(port))
  t.teardown(() => Promise.all(Array.from(servers.values(), (server) => server.stop())))
  const proxy = await startProxy(proxyPort, ports)
  t.teardown(() => proxy.close())

  const outcome: Outcome = { answered: 0, failures: [] }
  const ending = new AbortController()
  const keys = Array.from({ length: BUYERS }, randomKey)
  for (const key of keys) await chain.mint(addressOf(key), 10_000_000n)
  const buying = keys.map((key) => buyOn(proxy.url, key, ending.signal, outcome))
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    await delay(BETWEEN_MS)
    const port = ports[restart % ports.length] ?? 0
    const before = servers.get(port)
    if (before === undefined) throw new Error('no server')
    const exited = once(before.process, 'exit')
    before.process.kill('SIGTERM')
    await before.said(/stopping/)
    const health = await fetch(`${before.url}/health`)
    t.equal(health.status, 503, 'it says that it is stopping')
    t.match(await health.json(), { code: 'service_stopping', charged: 'no' })
    t.equal(health.headers.get('connection'), 'close')
    t.strictSame(await exited, [0, null])
    servers.set(port, await start(port))
  }
  await delay(BETWEEN_MS)
  ending.abort()
  await Promise.all(buying)
  t.strictSame(outcome.failures, [], proxy.output())
  t.ok(outcome.answered > RESTARTS * BUYERS, `${outcome.answered} calls were answered`)
  const onchain = onchainClient(chain)
  const charges = await Promise.all(keys.map((key) => onchain.charges(addressOf(key))))
  t.equal(
    charges.reduce((sum, each) => sum + each, 0),
    outcome.answered,
    'each call is charged once',
  )
}

for (const [program, start] of [
  ['nginx', startNginx],
  ['caddy', startCaddy],
] as const)
  t.test(
    `answers every paid call behind ${program} while one instance after the other is restarted`,
    { skip: proxyAbsence(program) ?? false, timeout: RESTARTS * RESTART_MS },
    (t) => restartUnderLoad(t, start),
  )

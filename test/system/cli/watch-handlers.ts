import t, { type Test } from 'tap'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { isJsonObject, type Json } from '../../../src/engine/base/json.ts'
import { writeShop } from '../../support/catalogs.ts'
import { at } from '../../support/documents.ts'
import { callTool } from '../../support/mcp.ts'
import { stockFetch, type Hex } from '../../support/payment.ts'
import { readSandboxFile, startServer, type RunningServer } from '../../support/server.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const ROUTES = `  /state: { price: free, handler: state, summary: What the process has in memory }
  /paid/state: { price: 0.01, handler: state, summary: The same for money }
`

/** Each answer names its process, how often this module has been asked, and the text of the module that is edited. */
const STATE = `import { text } from './text.js'
let asked = 0
setInterval(() => undefined, 1_000)
export const handlers = {
  state: async () => {
    asked += 1
    return { source: [{ name: 'computed' }], body: { pid: process.pid, asked, text } }
  },
}
`

interface WatchedShop {
  readonly server: RunningServer
  readonly edit: (text: string) => Promise<void>
}

const textModule = (text: string): string => `export const text = '${text}'\n`

async function openWatched(t: Test, args: readonly string[] = []): Promise<WatchedShop> {
  const { catalog, handlers } = writeShop(t, ROUTES)
  writeFileSync(join(handlers, 'index.js'), STATE)
  writeFileSync(join(handlers, 'text.js'), textModule('first'))
  const server = await startServer({
    args: ['--watch', '--sandbox', '--catalog', catalog, '--handlers', handlers, ...args],
  })
  t.teardown(() => server.stop())
  return { server, edit: (text) => editModule(server, join(handlers, 'text.js'), text) }
}

/** Resolves when the edited module serves, or is known not to. */
async function editModule(server: RunningServer, file: string, text: string): Promise<void> {
  const outcomes = (): number =>
    [...server.output().matchAll(/^handlers loaded again|^still serving the handlers/gm)].length
  const before = outcomes()
  writeFileSync(file, text)
  await until('the edit is noticed', () => outcomes() > before)
}

async function stateOf(server: RunningServer): Promise<Json> {
  return JSON.parse(await (await fetch(`${server.url}/state`)).text())
}

t.test('serves edited handlers from a new process, with the state of no module before', async (t) => {
  const { server, edit } = await openWatched(t)
  t.equal(at(await stateOf(server), 'asked'), 1)
  const before = await stateOf(server)
  t.match(before, { asked: 2, text: 'first' })
  await edit(textModule('second'))
  const after = await stateOf(server)
  t.match(after, { asked: 1, text: 'second' }, 'also the module that was not edited')
  t.not(at(after, 'pid'), at(before, 'pid'))
  await until('the old process ends', () => !isRunning(Number(at(before, 'pid'))))
})

t.test('keeps the process while edited handlers have errors, and says why', async (t) => {
  const { server, edit } = await openWatched(t)
  const before = await stateOf(server)
  for (const [broken, reason] of [
    ['export const text = ', /SyntaxError/],
    ['export const other = 1', /SyntaxError: .*text/],
    [`${textModule('')}throw new Error('no database')`, /Error: no database/],
    [`${textModule('')}process.exit(3)`, /still serving/],
  ] as const) {
    await edit(broken)
    await server.said(reason)
    t.match(await stateOf(server), { pid: at(before, 'pid'), text: 'first' })
  }
  await edit(textModule('second'))
  t.match(await stateOf(server), { asked: 1, text: 'second' })
})

t.test('answers a request on a connection that the old process holds with the new handlers', async (t) => {
  const { server, edit } = await openWatched(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ask = async (): Promise<{ readonly port: number; readonly body: Json }> => {
    const [response] = await once(get(`${server.url}/state`, { agent }), 'response')
    const port = Number(response.socket.localPort)
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return { port, body: JSON.parse(text) }
  }
  // The connection is kept open until the reload is over.
  let [last, going] = [await ask(), true]
  const asking = (async () => {
    while (going) {
      const next = await ask()
      if (next.port !== last.port && at(next.body, 'text') !== at(last.body, 'text'))
        t.fail('the new handlers were first seen on a new connection')
      last = next
    }
  })()
  await edit(textModule('second'))
  await until('the new handlers answer', () => at(last.body, 'text') === 'second')
  going = false
  await asking
})

t.test('keeps chains, payments and memories of a sandbox while handlers are reloaded', async (t) => {
  const folder = t.testdir({
    'package.json': '{"type":"module"}',
    'index.js': "import './text.js'\nexport const handlers = {}\n",
    'text.js': textModule('first'),
  })
  const server = await startServer({ args: ['--sandbox', '--offline', '--watch', '--handlers', folder] })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const pay = stockFetch(evm.payerKey)
  const stats = (): ReturnType<typeof callTool> => callTool(`${server.url}/mcp/memory`, 'memory_stats', {})
  await until('the memory store is made', async () => !(await stats()).isError)
  t.equal((await pay(`${server.url}/paid/ping`)).status, 200)
  for (const text of ['second', 'third']) {
    await editModule(server, join(folder, 'text.js'), textModule(text))
    t.notOk((await stats()).isError, 'the memory follows')
    t.equal((await pay(`${server.url}/paid/ping`)).status, 200)
  }
  t.strictSame(readSandboxFile(server), { ...readSandboxFile(server), evm }, 'the chain is the same')
  t.notMatch(server.output(), /unexpected|Unhandled|Warning/)
  t.equal(await server.stop(), 0)
  await t.rejects(fetch(evm.rpcUrl, { method: 'POST' }), 'the chain ends with the server')
  t.notOk(existsSync(join(server.dataDir, 'sandbox', 'lock')))
})

t.test('ends all of its processes with the one that an error ends', async (t) => {
  const { server, edit } = await openWatched(t)
  const { evm } = readSandboxFile(server)
  const ended = once(server.process, 'close')
  await edit(`${textModule('late')}setTimeout(() => { throw new Error('late mistake') }, 4_000)`)
  t.strictSame(await ended, [1, null])
  t.match(server.output(), /^uncaught error: Error: late mistake/m)
  await t.rejects(fetch(evm.rpcUrl, { method: 'POST' }))
})

t.test('ends its processes when it is killed', async (t) => {
  const { server } = await openWatched(t)
  const pid = Number(at(await stateOf(server), 'pid'))
  server.process.kill('SIGKILL')
  await until('the server ends', () => !isRunning(pid))
  const { evm, tempo } = JSON.parse(readFileSync(join(server.dataDir, 'sandbox', 'state.json'), 'utf8'))
  for (const chain of [evm, tempo]) process.kill(chain.pid, 'SIGKILL')
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

t.test('drops no request and charges each payment once while handlers change under load', async (t) => {
  const folder = t.testdir({ 'package.json': '{"type":"module"}', lib: {}, handlers: {} })
  const text = (round: number): string => `export const round = ${round}\n`
  const worked = readFileSync(new URL('../../fixtures/payments/handlers/index.js', import.meta.url), 'utf8')
  mkdirSync(join(folder, 'handlers'), { recursive: true })
  writeFileSync(
    join(folder, 'handlers', 'index.js'),
    `import { round } from '../lib/round.js'\n${worked.replace('value: `stored-value-${run}`', 'value: round')}`,
  )
  const file = join(folder, 'lib', 'round.js')
  writeFileSync(file, text(0))
  const shop = await openShop(undefined, ['--watch', '--handlers', join(folder, 'handlers')])
  t.teardown(() => shop.close())
  let going = true
  const failures: unknown[] = []
  const rounds = new Set<Json | undefined>()
  const charged: string[] = []
  const noted =
    (nonces: Set<string>): typeof fetch =>
    async (input, init) => {
      const request = new Request(input, init)
      const header = request.headers.get('payment-signature')
      const payment: unknown =
        header === null ? undefined : JSON.parse(Buffer.from(header, 'base64').toString())
      const nonce = isJsonObject(payment) ? at(payment, 'payload', 'authorization', 'nonce') : undefined
      if (typeof nonce === 'string') nonces.add(nonce)
      return fetch(request)
    }
  const buy = async (key: Hex): Promise<void> => {
    const nonces = new Set<string>()
    const pay = stockFetch(key, noted(nonces))
    for (let n = 1; going; n = (n % 100) + 1) {
      const response = await pay(`${shop.url}/paid/work?n=${n}`).catch(
        (fault: unknown) => void failures.push(fault),
      )
      if (response === undefined) continue
      const body: Json = JSON.parse(await response.text())
      if (response.status === 200) rounds.add(at(body, 'value'))
      else failures.push({ status: response.status, body })
    }
    charged.push(...nonces)
  }
  const look = async (): Promise<void> => {
    while (going) {
      const response = await fetch(`${shop.url}/paid/work`).catch(
        (fault: unknown) => void failures.push(fault),
      )
      if (response !== undefined && response.status !== 402) failures.push(response.status)
      await response?.arrayBuffer()
    }
  }
  const wallets: Hex[] = []
  while (wallets.length < 6) wallets.push(await shop.wallet())
  const all = [...wallets.map(buy), ...Array.from({ length: 20 }, look)]
  for (const round of [1, 2, 3, 4]) {
    await editModule(shop.server, file, text(round))
    await until(`round ${round} is sold`, () => rounds.has(round))
  }
  going = false
  await Promise.all(all)
  t.strictSame(failures, [], 'no request is dropped')
  const uses = (await shop.onchain.uses()).map(({ nonce }) => nonce)
  t.strictSame(uses.toSorted(), charged.toSorted(), 'what was signed was charged, once')
  t.comment(`${charged.length} purchases`)
  t.notMatch(shop.output(), /unexpected|Unhandled|Warning/)
})

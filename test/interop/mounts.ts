import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import mountKoa from 'koa-mount'
import t, { type Test } from 'tap'
import { createRatecard, type HandlerMap } from '../../src/engine/index.ts'
import { startBase, onchainClient } from '../support/base-chain.ts'
import { addressOf, randomKey, stockFetch, type Hex } from '../support/payment.ts'

const chain = await startBase()
t.teardown(() => chain.stop())

const text = `catalog: 1
service: { name: Greetings, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/hello/{name}:
    price: 0.001
    summary: A greeting
    parameters: { name: { type: string, example: Ada } }
    example: { text: Hello Ada }
  POST /paid/shout:
    price: 0.002
    summary: A text in capitals
    body: { properties: { text: { type: string, required: true, example: hello } } }
    example: { text: HELLO }
  /paid/slow:
    price: 0.001
    summary: Takes its time
    example: { text: done }
`

let slowness = 0
const handlers: HandlerMap = {
  hello: async ({ name }: { readonly name: string }) => ({ source: [], body: { text: `Hello ${name}` } }),
  'post/shout': async ({ text }: { readonly text: string }) => ({
    source: [],
    body: { text: text.toUpperCase() },
  }),
  slow: async () => {
    await delay(slowness)
    return { source: [], body: { text: 'done' } }
  },
}

interface Mounted {
  readonly url: string
  readonly server: Server
  readonly key: Hex
  readonly payTo: Hex
  /** What the shop has earned, in units of USDC. */
  readonly earned: () => Promise<bigint>
}

const LIMITS = { maxHeaderSize: 65_536, joinDuplicateHeaders: true }

/** Serves the catalog in a host, which gets the listener of Ratecard and answers with its own. */
async function mount(
  t: Test,
  host: (ratecard: RequestListener, koa: Koa) => RequestListener | Promise<RequestListener>,
): Promise<Mounted> {
  let answer: RequestListener = () => undefined
  const server = createServer(LIMITS, (request: IncomingMessage, response: ServerResponse) =>
    answer(request, response),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has a port')
  const url = `http://localhost:${address.port}`
  const dataDir = await mkdtemp(join(tmpdir(), 'ratecard-mount-'))
  const [payTo, signer, key] = [addressOf(randomKey()), randomKey(), randomKey()]
  await chain.setGas(addressOf(signer), 10n ** 18n)
  await chain.mint(addressOf(key), 1_000_000n)
  const app = await createRatecard({
    catalog: { text },
    baseUrl: url,
    handlers,
    payments: { x402: { payTo, rpcUrls: { base: chain.rpcUrl }, signerKeys: [signer] } },
    dataDir,
    logger: { warn: () => undefined, error: () => undefined },
  })
  answer = await host(app.callback(), app.koa)
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await app.close()
    await rm(dataDir, { recursive: true })
  })
  const seen = onchainClient(chain)
  const earned = async (): Promise<bigint> =>
    (await seen.received(payTo)).reduce((sum, each) => sum + each, 0n)
  return { url, server, key, payTo, earned }
}

const HOSTS: Readonly<Record<string, Parameters<typeof mount>[1]>> = {
  'node:http': (ratecard) => ratecard,
  'Express 5': (ratecard) => {
    const app = express()
    app.get('/', (_, response) => {
      response.send('the host')
    })
    app.use(ratecard)
    return app
  },
  'Fastify 5': async (ratecard) => {
    const fastify = Fastify({ serverFactory: (handler) => createServer(LIMITS, handler) })
    fastify.get('/', async () => 'the host')
    await fastify.register(async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
      scope.all('/*', (request, reply) => {
        reply.hijack()
        ratecard(request.raw, reply.raw)
      })
    })
    await fastify.ready()
    return (request, response) => fastify.routing(request, response)
  },
  Koa: (_, koa) => {
    const app = new Koa()
    app.use((ctx, next) => {
      if (ctx.path !== '/') return next()
      ctx.body = 'the host'
    })
    app.use(mountKoa(koa))
    const answer = app.callback()
    return (request, response) => void answer(request, response)
  },
}

for (const [name, host] of Object.entries(HOSTS))
  t.test(`sells a GET and a POST inside ${name} to the client from the registry`, async (t) => {
    const { url, key, earned } = await mount(t, host)
    const pay = stockFetch(key)
    if (name !== 'node:http') t.equal(await (await fetch(url)).text(), 'the host', 'its own routes answer')
    const hello = await pay(`${url}/paid/hello/Ada`)
    t.equal(hello.status, 200)
    t.match(await hello.json(), { text: 'Hello Ada' })
    t.equal(await earned(), 1_000n)
    const shout = await pay(`${url}/paid/shout`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"text":"quiet"}',
    })
    t.equal(shout.status, 200)
    t.match(await shout.json(), { text: 'QUIET' })
    t.equal(await earned(), 3_000n)
    t.match(await (await fetch(`${url}/openapi.json`)).json(), { servers: [{ url }] })
  })

t.test('charges nothing for a request whose body a parser of the host has read', async (t) => {
  const { url, key, earned } = await mount(t, (ratecard) => {
    const app = express()
    app.use(express.json())
    app.use(ratecard)
    return app
  })
  const response = await stockFetch(key)(`${url}/paid/shout`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"text":"quiet"}',
  })
  t.equal(response.status, 500)
  t.match(await response.json(), { detail: /before body parsers/, charged: 'no' })
  t.equal(await earned(), 0n)
})

t.test('charges nothing for a request below a path prefix', async (t) => {
  const { url, key, earned } = await mount(t, (ratecard) => express().use('/api', ratecard))
  const response = await stockFetch(key)(`${url}/api/paid/hello/Ada`)
  t.equal(response.status, 500)
  t.match(await response.json(), { charged: 'no' })
  t.equal(await earned(), 0n)
})

t.test(
  'charges nothing when the host closes the connection during the work, and sells to the next',
  async (t) => {
    const { url, server, key, earned } = await mount(t, (ratecard) => ratecard)
    slowness = 1_500
    server.setTimeout(500)
    await t.rejects(stockFetch(key)(`${url}/paid/slow`))
    await delay(slowness)
    t.equal(await earned(), 0n)
    server.setTimeout(0)
    slowness = 0
    t.equal((await stockFetch(key)(`${url}/paid/slow`)).status, 200)
    t.equal(await earned(), 1_000n)
  },
)

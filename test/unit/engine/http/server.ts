import t, { type Test } from 'tap'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { Socket } from 'node:net'
import Koa from 'koa'
import {
  attach,
  createHttpServer,
  listen,
  type HttpServer,
  type ServerSettings,
} from '../../../../src/engine/http/server.ts'
import { closeServer, handOver } from '../../../../src/engine/http/shutdown.ts'
import { dial, exchange, readAnswer } from '../../../support/http.ts'

async function serving(
  t: Test,
  settings: ServerSettings = {},
  app?: Koa,
): Promise<HttpServer & { url: string }> {
  const server = createHttpServer(settings)
  if (app !== undefined) attach(server, app)
  const port = await listen(server, 0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(server, { url: `http://127.0.0.1:${port}` })
}

/** Answers once it is let go. */
function gated(): { readonly app: Koa; readonly entered: Promise<void>; readonly open: () => void } {
  const app = new Koa()
  let open = (): void => undefined
  let enter = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const entered = new Promise<void>((resolve) => {
    enter = resolve
  })
  app.use(async (ctx) => {
    enter()
    await gate
    ctx.body = 'worth the wait'
  })
  return { app, entered, open: () => open() }
}

t.test('asks early requests to come again', async (t) => {
  const { url } = await serving(t, { headers: { 'Ratecard-Sandbox': '1' } })
  const response = await fetch(`${url}/paid/ping`)
  t.equal(response.status, 503)
  t.equal(response.headers.get('retry-after'), '1')
  t.equal(response.headers.get('ratecard-sandbox'), '1')
  t.match(await response.json(), { code: 'service_starting', charged: 'no', retryable: true })
})

t.test(
  'keeps an idle connection for longer than clients and proxies do, whatever waits for readers',
  async (t) => {
    const app = new Koa().use((ctx) => {
      ctx.body = String(ctx.req.socket.remotePort)
    })
    const { url } = await serving(t, { unreadWithin: 50 }, app)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const ask = async (): Promise<readonly [string, unknown]> => {
      const [answer]: IncomingMessage[] = await once(get(url, { agent }), 'response')
      if (answer === undefined) throw new Error('no answer')
      return [(await answer.toArray()).join(''), answer.headers['keep-alive']]
    }
    const [port, kept] = await ask()
    t.equal(kept, 'timeout=75')
    await delay(200)
    t.strictSame(await ask(), [port, kept], 'the same connection')
  },
)

t.test(
  'answers a request that comes when its connection has just been kept for as long as was said',
  async (t) => {
    const app = new Koa().use((ctx) => {
      ctx.body = 'in time'
    })
    const server = await serving(t, { idleWithin: 1_000 }, app)
    const socket = await dial(server.url)
    const ask = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    socket.write(ask)
    const [first] = await once(socket, 'data')
    t.match(String(first), /keep-alive: timeout=1\r\n/i)
    await once(server, 'timeout')
    socket.write(ask)
    t.equal((await readAnswer(socket)).body, 'in time')
  },
)

t.test('reports a port in use as an error', async (t) => {
  const { url } = await serving(t)
  await t.rejects(listen(createHttpServer(), Number(new URL(url).port), '127.0.0.1'), { code: 'EADDRINUSE' })
})

t.test('answers a client that stalls in its request, and closes the connection', async (t) => {
  const { url } = await serving(t, { headersWithin: 100, requestWithin: 200 }, new Koa())
  const got = await exchange(url, 'GET /paid/ping HTTP/1.1\r\nHost: x\r\n')
  t.equal(got.status, 408)
  t.match(JSON.parse(got.body), { code: 'request_timeout', charged: 'no' })
  t.equal((await fetch(url)).status, 404, 'others are served')
})

t.test('breaks off an answer that has begun when the rest of its request is late', async (t) => {
  const app = new Koa()
  app.use((ctx) => {
    ctx.respond = false
    ctx.res.writeHead(200).write('begun')
  })
  const { url } = await serving(t, { headersWithin: 100, requestWithin: 200 }, app)
  const got = await exchange(url, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nlate')
  t.match(got, { status: 200, body: /begun/ })
  t.notMatch(got.body, 'request_timeout')
})

t.test('answers a refused client that keeps writing, and closes the connection', async (t) => {
  const { url } = await serving(t, {}, new Koa())
  const socket = await dial(url)
  const writing = setInterval(() => socket.write('X-More: '.padEnd(4_096, 'y')), 1)
  t.teardown(() => clearInterval(writing))
  socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(80_000)}\r\n`)
  t.equal((await readAnswer(socket)).status, 431)
})

t.test('tells a client without a Host header why it is refused', async (t) => {
  const { url } = await serving(t, {}, new Koa())
  const socket = await dial(url)
  socket.end('GET / HTTP/1.1\r\n\r\n')
  const got = await readAnswer(socket)
  t.equal(got.status, 400)
  t.match(JSON.parse(got.body), { code: 'request_malformed', charged: 'no' })
  const old = await exchange(url, 'GET / HTTP/1.0\r\n\r\n')
  t.equal(old.status, 404, 'before HTTP/1.1 there was no Host')
})

t.test('serves a client with an unknown expectation', async (t) => {
  const { url } = await serving(t, {}, new Koa())
  const got = await exchange(url, 'GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n')
  t.equal(got.status, 404)
  t.match(got.headers, { 'content-length': /^\d+$/ })
})

t.test('asks for a body that is held back, and never inside an answer', async (t) => {
  const app = new Koa()
  app.use(async (ctx) => {
    // The second answer waits for the first.
    if (ctx.path === '/first') await new Promise((resolve) => setImmediate(resolve))
    ctx.body = Buffer.from(`answer of ${ctx.path}`)
  })
  const { url } = await serving(t, {}, app)
  const waiting = 'Host: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nx'
  const alone = await exchange(url, `POST /alone HTTP/1.1\r\n${waiting}`)
  t.equal(alone.status, 100)
  t.match(alone.body, /^HTTP\/1\.1 200 OK[^]*answer of \/alone$/)
  const both = `GET /first HTTP/1.1\r\nHost: x\r\n\r\nPOST /second HTTP/1.1\r\n${waiting}`
  const got = await exchange(url, both)
  t.match(got.body, /^answer of \/firstHTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nanswer of \/second$/)
})

t.test('closing waits for a request in flight and refuses new ones', async (t) => {
  const { app, entered, open } = gated()
  const server = await serving(t, {}, app)
  const answer = fetch(server.url)
  await entered
  t.equal(server.unanswered.size, 1)
  let closed = false
  const closing = closeServer(server, 60_000).then(() => {
    closed = true
  })
  await t.rejects(fetch(server.url), 'no new connection')
  t.equal(closed, false)
  open()
  t.equal(await (await answer).text(), 'worth the wait')
  await closing
  t.equal(server.unanswered.size, 0)
})

t.test(
  'closes the connection of a client that leaves an answer unread, and keeps one that waits for work',
  async (t) => {
    const app = new Koa()
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    app.use(async (ctx) => {
      if (ctx.path === '/slow') await opened
      ctx.body = ctx.path === '/slow' ? 'worth the wait' : 'x'.repeat(1_000_000)
    })
    const server = await serving(t, { unreadWithin: 200 }, app)
    const waiting = fetch(`${server.url}/slow`)
    await once(server, 'request')
    const connected = once(server, 'connection')
    const deaf = await dial(server.url)
    deaf.on('error', () => undefined).pause()
    const [held]: unknown[] = await connected
    if (!(held instanceof Socket)) throw new Error('no connection')
    const gone = once(held, 'close')
    // More than the system keeps for either side.
    deaf.write('GET /large HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(50))
    await gone
    open()
    t.equal(await (await waiting).text(), 'worth the wait')
    deaf.destroy()
  },
)

t.test('closing ends idle connections at once', async (t) => {
  const server = await serving(t, {}, new Koa())
  const silent = await dial(server.url)
  const half = await dial(server.url)
  half.write('GET / HT')
  await fetch(server.url)
  const gone = [silent, half].map((socket) => once(socket.resume(), 'close'))
  await closeServer(server, 60_000)
  await Promise.all(gone)
  t.pass('all are closed')
})

t.test('closing ends an endless request after its limit', async (t) => {
  const { app, entered } = gated()
  const server = await serving(t, {}, app)
  const answer = fetch(server.url)
  answer.catch(() => undefined)
  await entered
  await closeServer(server, 50)
  await t.rejects(answer)
})

t.test('closes a server before it listens', async (t) => {
  await t.resolves(closeServer(createHttpServer(), 60_000))
})

t.test('hands its port over: answers what came before, and passes on what comes after', async (t) => {
  const { app, entered, open } = gated()
  const [old, next] = [await serving(t, {}, app), await serving(t, {}, echo())]
  const [busy, unused] = [await dial(old.url), await dial(old.url)]
  busy.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await entered
  const handedOver = handOver(old, Number(new URL(next.url).port), '0.0.0.0')
  await t.rejects(fetch(old.url), 'no connection is taken')
  unused.write('POST /paid/x?y=1 HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody')
  const passed = await readAnswer(unused)
  t.match(passed.headers, { connection: 'close', 'x-next': 'yes' })
  t.strictSame(JSON.parse(passed.body), { method: 'POST', url: '/paid/x?y=1', a: '1', body: 'body' })
  open()
  const answered = await readAnswer(busy)
  t.equal(answered.body, 'worth the wait')
  t.equal(answered.headers['connection'], 'close')
  await (
    await handedOver
  ).closed
})

t.test('closes the connection of a request that nobody is left to answer', async (t) => {
  const [old, next] = [await serving(t, {}, new Koa()), await serving(t)]
  const socket = await dial(old.url)
  await handOver(old, Number(new URL(next.url).port), '127.0.0.1')
  next.close()
  const closed = once(socket, 'close')
  socket.resume().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await closed
})

t.test('keeps idle connections for a moment after another process has taken the port', async (t) => {
  const [old, next] = [await serving(t, { idleWithin: 50 }, new Koa()), await serving(t)]
  const [used, unused] = [await dial(old.url), await dial(old.url)]
  used.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(used, 'data')
  const { closed } = await handOver(old, Number(new URL(next.url).port), '127.0.0.1')
  const left = [used, unused].map((socket) => once(socket.resume(), 'close'))
  t.equal(old.sockets.size, 2, 'not closed at once')
  await closed
  await Promise.all(left)
})

/** Tells what it is asked. */
function echo(): Koa {
  const app = new Koa()
  app.use(async (ctx) => {
    let body = ''
    for await (const chunk of ctx.req) body += String(chunk)
    ctx.set('X-Next', 'yes')
    ctx.body = { method: ctx.method, url: ctx.url, a: ctx.get('x-a'), body }
  })
  return app
}

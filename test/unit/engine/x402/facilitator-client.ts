import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import {
  createFacilitator,
  wasNeverSent,
} from '../../../../src/engine/x402/facilitators/facilitator-client.ts'
import { systemRuntime, type HttpTransport } from '../../../../src/engine/base/runtime.ts'
import { listening } from '../../../support/http.ts'

const HASH = `0x${'ab'.repeat(32)}`

async function serving(t: Test, listener: RequestListener): Promise<string> {
  const { url, close } = await listening(createServer(listener))
  t.teardown(close)
  return url
}

/** A server below HTTP, that does this with every connection. */
async function connecting(t: Test, onConnection: (socket: Socket) => void): Promise<string> {
  const server: Server = createSocketServer((socket) => {
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return portOf(server)
}

function portOf(server: Server): string {
  const address = server.address()
  return typeof address === 'object' && address !== null ? String(address.port) : ''
}

const settleAt = (url: string) => createFacilitator({ url, token: undefined }, systemRuntime).settle('{}')

t.test(
  'allows another facilitator after a settlement that was certainly unsent: refused, unknown, untrusted',
  async (t) => {
    const { url, close } = await listening(createServer())
    await close()
    t.strictSame(await settleAt(url), { kind: 'unreached' }, 'nothing listens there')
    const { port } = new URL(url)
    t.strictSame(
      await settleAt(`http://localhost:${port}`),
      { kind: 'unreached' },
      'by neither of two addresses',
    )
    t.strictSame(await settleAt('http://nobody.invalid'), { kind: 'unreached' }, 'no such name')

    const plain = await serving(t, (_, response) => response.end())
    t.strictSame(await settleAt(plain.replace('http:', 'https:')), { kind: 'unreached' }, 'no TLS there')
    const mute = await connecting(t, (socket) => socket.destroy())
    t.strictSame(
      await settleAt(`https://127.0.0.1:${mute}`),
      { kind: 'unreached' },
      'cut before the handshake is done',
    )
  },
)

t.test('keeps a settlement that may have been read at its facilitator', async (t) => {
  const reads: readonly ((socket: Socket) => void)[] = [
    (socket) => socket.once('data', () => socket.destroy()),
    (socket) => socket.once('data', () => socket.resetAndDestroy()),
    (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"succ')),
    (socket) => socket.once('data', () => socket.end('hello')),
  ]
  for (const read of reads) {
    t.strictSame(await settleAt(`http://127.0.0.1:${await connecting(t, read)}`), { kind: 'lost' })
  }
  const failing =
    (fault: unknown): HttpTransport =>
    () =>
      Promise.reject(fault as Error)
  const thrown = (fault: unknown) =>
    createFacilitator(
      { url: 'http://x', token: undefined },
      { ...systemRuntime, http: failing(fault) },
    ).settle('')
  t.strictSame(await thrown(new DOMException('late', 'TimeoutError')), { kind: 'lost' })
  t.strictSame(await thrown('something else'), { kind: 'lost' })
})

t.test('classifies errors of Node and undici by code, at any depth', async (t) => {
  const fault = (members: object, cause?: unknown): Error =>
    Object.assign(new Error('fetch failed', cause === undefined ? {} : { cause }), members)
  const connect = fault({ code: 'ETIMEDOUT', syscall: 'connect' })
  const timeout = fault({ code: 'UND_ERR_CONNECT_TIMEOUT' })
  const reset = fault({ code: 'ECONNRESET', syscall: 'read' })
  const certificates = ['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID']
  for (const code of certificates) t.equal(wasNeverSent(fault({}, fault({ code }))), true, code)
  for (const each of [connect, timeout, fault({}, connect), new AggregateError([connect, connect])])
    t.equal(wasNeverSent(each), true)
  for (const each of [
    reset,
    fault({ code: 'UND_ERR_SOCKET' }),
    fault({ code: 'UND_ERR_HEADERS_TIMEOUT' }),
    fault({}, reset),
    new AggregateError([connect, reset]),
    new AggregateError([]),
    undefined,
  ])
    t.equal(wasNeverSent(each), false)
})

t.test('reads a refusal from the body under any status', async (t) => {
  for (const status of [200, 400, 402, 500, 503]) {
    const url = await serving(t, ({ url: path }, response) => {
      response.writeHead(status, { 'content-type': 'text/plain' })
      response.end(
        path === '/verify'
          ? '{"isValid":false,"invalidReason":"insufficient_funds","invalidMessage":null}'
          : `{"success":false,"errorReason":"settlement_pending","transaction":"${HASH}","network":"eip155:8453"}`,
      )
    })
    const facilitator = createFacilitator({ url, token: undefined }, systemRuntime)
    t.strictSame(await facilitator.verify('{}'), {
      kind: 'answer',
      value: { isValid: false, invalidReason: 'insufficient_funds' },
    })
    t.strictSame(await facilitator.settle('{}'), {
      kind: 'answer',
      value: { success: false, transaction: HASH, errorReason: 'settlement_pending', listing: undefined },
    })
  }
})

t.test('accepts a receipt only with a transaction', async (t) => {
  for (const transaction of ['', '0x12', 'https://explorer.example/tx', null, 7, `${HASH}00`]) {
    const url = await serving(t, (_, response) =>
      response.end(JSON.stringify({ success: true, transaction })),
    )
    t.strictSame(await settleAt(url), {
      kind: 'answer',
      value: { success: true, transaction: undefined, errorReason: undefined, listing: undefined },
    })
  }
})

t.test('tells an unreadable answer from a status that declines a request', async (t) => {
  const bodies = [
    '',
    'null',
    '[]',
    '7',
    '{}',
    '{"success":"yes"}',
    '<h1>502</h1>',
    '{"success":true',
    '{"error":"x"}',
  ]
  for (const body of bodies) {
    for (const status of [200, 400, 408, 409, 500, 502]) {
      const url = await serving(t, (_, response) => response.writeHead(status).end(body))
      t.strictSame(await settleAt(url), { kind: 'lost' }, `${status} ${body}`)
    }
  }
  for (const status of [301, 308, 401, 403, 404, 405, 413, 429]) {
    const url = await serving(t, (_, response) =>
      response.writeHead(status, { location: '/elsewhere' }).end('no'),
    )
    t.strictSame(await settleAt(url), { kind: 'declined', status })
  }
})

t.test('sends a payment to the configured address only, and refuses redirects', async (t) => {
  let elsewhere = 0
  const other = await serving(t, (_, response) => {
    elsewhere += 1
    response.end(`{"success":true,"transaction":"${HASH}"}`)
  })
  for (const status of [301, 302, 303, 307, 308]) {
    const url = await serving(t, (_, response) =>
      response.writeHead(status, { location: `${other}/settle` }).end(),
    )
    t.strictSame(await settleAt(url), { kind: 'declined', status })
  }
  t.equal(elsewhere, 0)
})

t.test('cuts off an endless answer', async (t) => {
  const block = ' '.repeat(16_384)
  let poured = 0
  const url = await serving(t, (_, response) => {
    const pour = (): void => {
      do poured += block.length
      while (response.write(block))
    }
    response.on('drain', pour)
    pour()
  })
  t.strictSame(await settleAt(url), { kind: 'lost' })
  t.ok(poured < 50_000_000, `${poured} bytes were taken`)
})

t.test('sends JSON with the token, one request after the other over one connection', async (t) => {
  const seen: { readonly headers: IncomingHttpHeaders; readonly path: string; readonly body: string }[] = []
  const ports = new Set<number | undefined>()
  const url = await serving(t, (request, response) => {
    ports.add(request.socket.remotePort)
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      seen.push({ headers: request.headers, path: `${request.method} ${request.url}`, body })
      response.end('{"isValid":true,"success":true,"kinds":[]}')
    })
  })
  const facilitator = createFacilitator({ url, token: 'a.b.c' }, systemRuntime)
  // A connection is free again in the next turn of the event loop.
  await facilitator.verify('{"a":1}')
  await turn()
  await facilitator.settle('{"b":2}')
  await turn()
  await facilitator.supported()
  await turn()
  await createFacilitator({ url, token: undefined }, systemRuntime).supported()
  t.strictSame(
    seen.map(({ path, body, headers }) => [path, body, headers.authorization, headers['content-type']]),
    [
      ['POST /verify', '{"a":1}', 'Bearer a.b.c', 'application/json'],
      ['POST /settle', '{"b":2}', 'Bearer a.b.c', 'application/json'],
      ['GET /supported', '', 'Bearer a.b.c', undefined],
      ['GET /supported', '', undefined, undefined],
    ],
  )
  t.equal(ports.size, 1)
})

/** A server that takes this many requests over one connection, and closes it when it has read the next one. */
async function cutting(t: Test, most: number): Promise<{ readonly url: string; readonly read: string[] }> {
  const taken = new WeakMap<Socket, number>()
  const read: string[] = []
  const url = await serving(t, ({ url: path = '', socket }, response) => {
    read.push(path)
    const before = taken.get(socket) ?? 0
    taken.set(socket, before + 1)
    if (before < most) response.end('{"isValid":true,"success":true}')
    else socket.destroy()
  })
  return { url, read }
}

t.test('repeats a verification when its kept connection has ended, and never a settlement', async (t) => {
  const kept = await cutting(t, 1)
  const facilitator = createFacilitator({ url: kept.url, token: undefined }, systemRuntime)
  await facilitator.verify('{}')
  await turn()
  t.match(await facilitator.verify('{}'), { kind: 'answer' }, 'over a new connection')
  await turn()
  t.strictSame(await facilitator.settle('{}'), { kind: 'lost' })
  t.strictSame(kept.read, ['/verify', '/verify', '/verify', '/settle'])

  const dead = await cutting(t, 0)
  const other = createFacilitator({ url: dead.url, token: undefined }, systemRuntime)
  t.strictSame(await other.verify('{}'), { kind: 'lost' })
  t.equal(dead.read.length, 2, 'not more than twice')
})

t.test('reads what a facilitator supports as far as possible', async (t) => {
  const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:8453' }
  const kinds = [
    kind,
    { ...kind, extra: { feePayer: 'x' } },
    { ...kind, network: 7 },
    null,
    'exact',
    { scheme: 'exact' },
  ]
  const url = await serving(t, (_, response) => response.end(JSON.stringify({ kinds })))
  t.strictSame(await createFacilitator({ url, token: undefined }, systemRuntime).supported(), {
    kind: 'answer',
    value: [kind, kind],
  })
})

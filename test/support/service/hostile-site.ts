import { once } from 'node:events'
import { createServer as createSecureServer } from 'node:https'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { AUTHORITY, SITE_CERTIFICATE, SITE_KEY } from '../../../src/service/stand-ins/web/certificates.ts'
import { Egress, type Request } from '../../../src/service/sources/egress.ts'
import type { Wire } from '../../../src/service/sources/egress/connection.ts'
import type { Outcome } from '../../../src/service/sources/egress/outcome.ts'
import type { Policy } from '../../../src/service/sources/egress/target.ts'
import { listening } from '../http.ts'

interface Teardown {
  teardown(work: () => Promise<void>): void
}

const HTML = { 'content-type': 'text/html; charset=utf-8' }

/** Size of a decompressed bomb. */
const BOMB_BYTES = 200 * 1024 * 1024

/** Two hundred megabytes of nothing, made in pieces: gzip joins its members, brotli has to be one. */
const bombs = {
  gzip: () => {
    const member = gzipSync(Buffer.alloc(10 * 1024 * 1024))
    return Buffer.concat(Array.from({ length: BOMB_BYTES / (10 * 1024 * 1024) }, () => member))
  },
  br: () => brotliCompressSync(Buffer.alloc(64 * 1024 * 1024), { params: { 1: 1 } }),
}

/** A hostile site, with one attack on its visitors for each path. */
const hostile: RequestListener = (request, response) => {
  const url = new URL(request.url ?? '/', 'http://hostile')
  const [, what = '', argument = ''] = url.pathname.split('/')
  const to = url.searchParams.get('to') ?? '/page'
  const send = (body: string | Buffer, headers: Record<string, string> = {}, status = 200): void => {
    response.writeHead(status, { ...HTML, ...headers }).end(body)
  }
  switch (what) {
    case 'page':
      return send(`<p>${request.headers['user-agent']}; ${Object.keys(request.headers).sort().join(' ')}`)
    case 'to':
      return send('', { location: to }, Number(argument || 302))
    case 'long':
      return send('', { location: `/${'a'.repeat(3000)}` }, 302)
    case 'nowhere':
      return send('moved', {}, 302)
    case 'chain':
      return argument === '0'
        ? send('the end')
        : send('', { location: `/chain/${Number(argument) - 1}` }, 302)
    case 'loop':
      return send('', { location: request.url ?? '/loop' }, 301)
    case 'endless':
      return send('x'.repeat(1000), { location: `/endless/${Number(argument) + 1}` }, 308)
    case 'gzip':
      return send(gzipSync(`small ${argument}`), { 'content-encoding': 'gzip' })
    case 'br':
      return send(brotliCompressSync(`small ${argument}`), { 'content-encoding': 'br' })
    case 'gzip-bomb':
      return send(bombs.gzip(), { 'content-encoding': 'gzip' })
    case 'br-bomb':
      return send(bombs.br(), { 'content-encoding': 'br' })
    case 'twice-packed':
      return send(gzipSync(gzipSync('x')), { 'content-encoding': 'gzip, gzip' })
    case 'unknown-coding':
      return send('x', { 'content-encoding': 'zstd' })
    case 'deflate':
      return send('x', { 'content-encoding': 'deflate' })
    case 'not-gzip':
      return send('plain text', { 'content-encoding': 'gzip' })
    case 'half-gzip':
      return send(gzipSync('x'.repeat(5000)).subarray(0, 20), { 'content-encoding': 'gzip' })
    case 'not-br':
      return send(Buffer.from([255, 255, 255, 255, 1, 2, 3]), { 'content-encoding': 'br' })
    case 'large':
      return send(Buffer.alloc(3 * 1024 * 1024, 120))
    case 'flood':
      response.writeHead(200, HTML)
      response.on('error', () => undefined)
      return void (async () => {
        while (!response.destroyed) {
          if (!response.write(Buffer.alloc(65536, 120))) await pause(1)
        }
      })()
    case 'drip': {
      response.writeHead(200, HTML)
      const timer = setInterval(() => response.write('x'), 50)
      return void response.once('close', () => clearInterval(timer))
    }
    case 'silence':
      return undefined
    case 'stall':
      return void response.writeHead(200, HTML).write('<p>so far')
    case 'huge-headers':
      return send('x', { 'x-pad': 'x'.repeat(64 * 1024) })
    case 'many-headers':
      return send(
        'x',
        Object.fromEntries(Array.from({ length: 2000 }, (_, place) => [`x-${place}`, 'x'.repeat(20)])),
      )
    case 'reset':
      return void response
        .writeHead(200, { ...HTML, 'content-length': '1000' })
        .write('x', () => response.destroy())
    case 'status':
      return send('', {}, Number(argument))
    case 'cookie':
      return send('', { 'set-cookie': 'a=1', location: '/page' }, 302)
    case 'robots.txt':
      return send('', {}, 404)
    default:
      return send('not here', {}, 404)
  }
}

interface Internet {
  readonly egress: Egress
  readonly policy: Policy
  readonly wire: Wire
  /** The hostile site, under any name. */
  readonly port: number
  readonly securePort: number
  /** Sends the bytes that a test writes. */
  readonly rawPort: number
  /** Connections to the service of this machine that is nobody's business, on the same ports. */
  readonly inside: () => number
  /** Names that were asked for. */
  readonly asked: string[]
  readonly get: (url: string, request?: Partial<Request>, signal?: AbortSignal) => Promise<Outcome>
}

export interface InternetOptions {
  /** Addresses of names; a list of lists is given out one after the other, the last again and again. */
  readonly names?: Readonly<Record<string, readonly (readonly string[])[]>>
  readonly site?: RequestListener
  readonly raw?: (socket: Socket) => void
  readonly certificate?: string
  readonly trusted?: string
}

const NEVER = new AbortController().signal

/**
 * A small Internet on this machine: a site at 127.0.0.1, the only address that may be asked, and next to it at 127.0.0.2
 * what a caller may not reach. Every name leads to the site unless the test says otherwise.
 */
export async function openInternet(t: Teardown, options: InternetOptions = {}): Promise<Internet> {
  const { names = {}, site = hostile, raw = (socket) => socket.destroy() } = options
  const certificate = options.certificate ?? SITE_CERTIFICATE
  const plain = createServer({ maxHeaderSize: 1 << 20 }, site)
  const secure = createSecureServer({ key: SITE_KEY, cert: certificate }, site)
  const open: Socket[] = []
  const bare = createSocketServer((socket) => {
    open.push(socket)
    socket.on('error', () => undefined)
    raw(socket)
  })
  const servers = [await listening(plain), await listening(secure)]
  const ports = [...servers.map(({ url }) => Number(new URL(url).port)), await portOf(bare, 0, '127.0.0.1')]
  const [port = 0, securePort = 0, rawPort = 0] = ports
  let inside = 0
  const guarded = ports.map((each) => {
    const server = createSocketServer((socket) => {
      inside += 1
      socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret')
    })
    return { server, listening: portOf(server, each, '127.0.0.2') }
  })
  await Promise.all(guarded.map((each) => each.listening))
  t.teardown(async () => {
    await Promise.all(servers.map(({ close }) => close()))
    for (const socket of open) socket.destroy()
    for (const server of [bare, ...guarded.map((each) => each.server)]) server.close()
  })
  const asked: string[] = []
  const resolve = async (host: string): Promise<readonly string[]> => {
    const answers = names[host] ?? [['127.0.0.1']]
    const turn = asked.filter((each) => each === host).length
    asked.push(host)
    return answers[Math.min(turn, answers.length - 1)] ?? []
  }
  const policy = { own: ['api.our-service.com'], allow: ports.map((each) => `127.0.0.1:${each}`) }
  const wire = { resolve, ca: options.trusted ?? AUTHORITY }
  const egress = new Egress(
    {
      agent: 'Ratecard',
      userAgent: 'Ratecard/1.0 (+https://api.our-service.com)',
      policy,
      wire,
    },
    () => new Date(),
  )
  const request: Request = {
    accept: 'text/html',
    measure: { bytes: 2 * 1024 * 1024, beyond: 'refuse' },
    robots: 'ignore',
  }
  return {
    egress,
    policy,
    wire,
    port,
    securePort,
    rawPort,
    inside: () => inside,
    asked,
    get: (url, differing = {}, signal = NEVER) => egress.get(url, { ...request, ...differing }, signal),
  }
}

async function portOf(server: Server, port: number, host: string): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

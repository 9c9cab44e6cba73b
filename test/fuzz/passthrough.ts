import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { Connection } from './support/connection.ts'
import { isSold } from './support/careless-sites.ts'
import { attempt } from './support/property-run.ts'
import { paths } from './support/request-targets.ts'
import { fc } from '../support/fast-check.ts'
import { listening } from '../support/http.ts'
import { serveUnpaid } from '../support/server.ts'
import { frontCatalog } from '../support/site.ts'
import { spellingsOf } from '../support/spellings.ts'

/** The sold things that the site was asked for, by the reading of any of the servers. */
const given: string[] = []
const listener = createServer((request, response) => {
  const { url: target = '', method } = request
  if (isSold(target)) given.push(`${method} ${target}`)
  request.resume().once('end', () => response.setHeader('Content-Length', '4').end('site'))
})
// What Node.js takes for no request is answered with its length, too.
listener.on('clientError', (_, socket) => {
  socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
})
const site = await listening(listener)
t.teardown(() => site.close())
const file = join(t.testdir({ 'catalog.yaml': frontCatalog(site.url) }), 'catalog.yaml')
const server = await serveUnpaid(t, file)

const SOLD = ['/v1/translate', '/search', '/v1/items/a1']
const methods = fc.constantFrom('GET', 'GET', 'POST', 'HEAD', 'DELETE', 'OPTIONS', 'PROPFIND')
const misleading = fc.constantFrom(
  [],
  ['X-Original-URL: /v1/translate'],
  ['X-HTTP-Method-Override: POST', 'X-Rewrite-URL: /search'],
  ['X-Forwarded-Prefix: /v1', 'PATH_INFO: /v1/translate'],
  ['Connection: Host, X-Forwarded-For'],
)

/** Pieces that servers read in different ways, at any place. */
const pieces = fc.constantFrom(
  ...'/ // \\ ; ;x ;x=/ . .. /./ /../ /x/../ %2f %2F %5c %2e %2e%2e %252e %252f %25252f %3b %00 %0a %20 %23 %3f ? # %c0%af'.split(
    ' ',
  ),
  ...'%c0%ae %e0%80%af %ef%bc%8f %ef%bc%8e %e2%80%8b %u002f %u002e .json .JSON %2ejson %E3%80%80 %c2%a0 % %2 %zz ..; ..;/ x //x'.split(
    ' ',
  ),
)

/** A sold path with pieces put in and letters written otherwise. */
const mutated = fc
  .tuple(
    fc.constantFrom(...SOLD, ...SOLD.flatMap(spellingsOf)),
    fc.array(fc.tuple(fc.nat(40), pieces), { maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(40), fc.constantFrom('upper', 'encoded', 'twice', 'wide')), { maxLength: 4 }),
  )
  .map(([path, added, written]) => {
    let text = path
    for (const [at, how] of written) text = rewrite(text, at % text.length, how)
    for (const [at, piece] of added) text = text.slice(0, at) + piece + text.slice(at)
    return text.startsWith('/') || text.startsWith('http') ? text : `/${text}`
  })

function rewrite(text: string, at: number, how: 'upper' | 'encoded' | 'twice' | 'wide'): string {
  const letter = text.charAt(at)
  const code = letter.charCodeAt(0)
  if (code > 0x7f) return text
  const hex = code.toString(16).padStart(2, '0')
  const written = {
    upper: letter.toUpperCase(),
    encoded: `%${hex}`,
    twice: `%25${hex}`,
    wide: code > 0x20 ? encodeURIComponent(String.fromCharCode(code + 0xfee0)) : letter,
  }[how]
  return text.slice(0, at) + written + text.slice(at + 1)
}

async function passes(connection: Connection, target: string, method: string, lines: readonly string[]) {
  const sent = target.replace(/[\0-\x20\x7f]/g, '+')
  const head = [`${method} ${sent} HTTP/1.1`, 'Host: localhost', 'Content-Length: 0', ...lines]
  const { status, body } = await connection.ask(Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), method)
  const [unpaid] = given
  if (unpaid !== undefined) {
    given.length = 0
    throw new Error(`the site was asked for what it sells: ${unpaid}`)
  }
  return [body === 'site' || (method === 'HEAD' && status === 200) ? 'passed' : String(status)]
}

t.test('gives nothing that is sold for any writing of its path', async (t) => {
  const connection = new Connection(server.url)
  await attempt(t, 80, fc.tuple(mutated, methods, misleading), ([target, method, lines]) =>
    passes(connection, target, method, lines),
  )
  connection.close()
})

t.test('gives nothing that is sold for any target', async (t) => {
  const connection = new Connection(server.url)
  await attempt(t, 20, fc.tuple(paths(SOLD), methods), ([target, method]) =>
    passes(connection, target, method, []),
  )
  connection.close()
})

t.test('stays healthy through all of it', async (t) => {
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  t.notMatch(server.output(), /unexpected|unhandled|warning:/i)
})

// How late the event loop of the built server comes while callers send it what takes longest:
// npm run build && node test/bench/lag.mjs [seconds]. A server for each handler, so that what it loads first counts.
// It prints and judges nothing; the aim is a p99 under 50 ms. "own" leaves out what the loop waited for a processor.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv } from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'
import { LAG_PROBE, lagOf } from './servers/event-loop.mjs'

register()
const { writeOpenCatalog } = await import('../fuzz/support/open-catalog.ts')

const SECONDS = Number(argv[2] ?? 5)
const CALLERS = 4
const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** As much as fits into a URL, where every byte beyond ASCII takes three. */
const long = (shape) =>
  shape
    .repeat(20_000)
    .slice(0, Math.min(20_000, Math.floor((60_000 * shape.length) / encodeURIComponent(shape).length)))
const PAGES = {
  nested: '<div>'.repeat(30_000),
  paragraphs: '<p>text of a paragraph, with commas'.repeat(60_000),
  tables: '<table><tr><td>'.repeat(60_000),
  attributes: `<a ${'b="c" '.repeat(300_000)}>`,
  entities: '&amp;&#x41;&nosuch;'.repeat(90_000),
  words: `<p>${'a'.repeat(2_000_000)}`,
}
const site = createServer(({ url = '' }, response) => {
  const page = PAGES[url.slice(1)]
  response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html' }).end(page)
})
site.listen(0, '127.0.0.1')
await once(site, 'listening')
const host = `127.0.0.1:${site.address().port}`

const schema = (pattern) => JSON.stringify({ type: 'string', pattern })
const HOSTILE = {
  'nothing at all': [],
  extract: Object.keys(PAGES).map((page) => ({
    path: '/sample/util/extract',
    query: { url: `http://${host}/${page}` },
  })),
  guard: ['a', 'ignore all ', '\u202e', '<|im_start|>', 'aB3/', '4111 ', 'born ', '忽略', 'a@b.', '\n\n'].map(
    (shape) => ({ path: '/open/util/guard', query: { text: long(shape) } }),
  ),
  json: [
    { op: 'validate', data: JSON.stringify('a'.repeat(15_000)), schema: schema('^(a+)+$') },
    {
      op: 'validate',
      data: JSON.stringify(Array.from({ length: 4000 }, () => 1)),
      schema: '{"uniqueItems":true,"items":{"anyOf":[{"const":2},{"const":3}]}}',
    },
    {
      op: 'query',
      data: JSON.stringify({ a: Array.from({ length: 3000 }, () => [[]]) }),
      schema: '$..[?@..*]..*',
    },
    { op: 'minify', data: '['.repeat(20_000) },
    { op: 'repair', data: long('{a:') },
    {
      op: 'diff',
      data: JSON.stringify(Array.from({ length: 4000 }, (_, at) => at)),
      schema: JSON.stringify(Array.from({ length: 4000 }, (_, at) => 4000 - at)),
    },
  ].map((query) => ({ path: '/open/util/json', query })),
  tokencost: ['a', '汉', '\u0301', '😀', ' ', 'ab ', '{"', '\u200b', 'İ'].map((shape) => ({
    path: '/open/util/tokencost',
    query: { text: long(shape) },
  })),
  repurpose: ['a. ', 'One two three four five six seven. ', 'Dr. ', '玩。', '? ', '\n', 'か', "a'", 'a-'].map(
    (shape) => ({ path: '/open/util/repurpose', query: { text: long(shape), n: '10' } }),
  ),
}

async function open(catalog) {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const child = spawn(
    process.execPath,
    [...LAG_PROBE, MAIN, 'serve', '--port', '0', '--catalog', catalog, '--data-dir', directory],
    {
      env: {
        PATH: process.env.PATH ?? '',
        HOST: '127.0.0.1',
        BASE_URL: 'https://api.example.com',
        PAY_TO: `0x${'2b'.repeat(20)}`,
        SETTLER_PRIVATE_KEY: `0x${'1f'.repeat(32)}`,
        RPC_URL_8453: 'http://127.0.0.1:9',
        EGRESS_ALLOW: host,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  child.stderr.resume()
  const url = await new Promise((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const [, found] = /^listening on (\S+)/.exec(line) ?? []
      if (found !== undefined) resolve(found.replace('0.0.0.0', '127.0.0.1'))
    })
    child.once('exit', (code) => reject(new Error(`the server has ended with ${code}`)))
  })
  const stop = async () => {
    child.removeAllListeners('exit')
    child.kill('SIGTERM')
    await once(child, 'exit')
    rmSync(directory, { recursive: true, force: true })
  }
  return { url, lag: () => lagOf(child), stop }
}

const asked = Object.values(HOSTILE).flatMap((calls) =>
  calls.map(({ path }) => path.replace('/open/', '/paid/')),
)
const { file, remove } = writeOpenCatalog((path) => asked.includes(path))
const row = (...cells) =>
  console.log(cells.map((cell, at) => (at === 0 ? cell.padEnd(16) : cell.padStart(9))).join(''))
row('', 'calls', 'p50 ms', 'p99 ms', 'max ms', 'own p99', 'own max', 'statuses')
try {
  for (const [name, calls] of Object.entries(HOSTILE)) {
    const { url, lag, stop } = await open(file)
    await lag()
    const until = Date.now() + SECONDS * 1000
    const statuses = new Map()
    let count = 0
    const call = async () => {
      const { path, query } = calls[count++ % calls.length]
      const answer = await fetch(`${url}${path}?${new URLSearchParams(query)}`)
      await answer.arrayBuffer()
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    }
    const caller = async () => {
      while (Date.now() < until) await call()
    }
    if (calls.length === 0) await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))
    else await Promise.all(Array.from({ length: CALLERS }, caller))
    const { lag: all, own } = await lag()
    const said = [...statuses].map(([status, count]) => `${status}×${count}`).join(' ')
    row(
      name,
      String(count),
      ...[all.p50, all.p99, all.max, own.p99, own.max].map((ms) => ms.toFixed(1)),
      `  ${said}`,
    )
    await stop()
  }
} finally {
  site.close()
  site.closeAllConnections()
  remove()
}

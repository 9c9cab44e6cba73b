import t from 'tap'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { at } from '../../support/documents.ts'
import type { BigIntStats } from 'node:fs'
import { Watch } from '../../../src/cli/watch.ts'
import { markNow } from '../../../src/engine/catalog/load-catalog.ts'
import { isJsonObject, type Json } from '../../../src/engine/base/json.ts'
import { readHeader, stockFetch, type Hex } from '../../support/payment.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const directory = mkdtempSync(join(tmpdir(), 'ratecard-watch-'))
const catalog = join(directory, 'catalog.yaml')
const example = join(directory, 'example.json')

/** Its number is in every text, so that an answer made of two revisions is detected. */
function textOf(revision: number, price = priceOf(revision)): string {
  return `catalog: 1
service: { name: Changing shop, version: '1.0.0', description: Revision ${revision} }
payments: { currency: USD, x402: { networks: [base], timeout: 60s } }
routes:
  /paid/work:
    price: ${price}
    summary: Revision ${revision} at ${priceOf(revision)}
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 100000 } }
    example: ./example.json
documents: { health: /health, status-json: /status.json, openapi: /openapi.json, docs-md: /docs.md }
`
}

function priceOf(revision: number): string {
  return (0.01 + revision / 10_000).toFixed(4)
}

function atomic(revision: number): string {
  return String(10_000 + revision * 100)
}

writeFileSync(example, '{"work":"first"}')
writeFileSync(catalog, textOf(0))
const handlers = join(directory, 'handlers')
const library = join(directory, 'lib')
for (const folder of [handlers, library]) mkdirSync(folder)
writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
const VALUE = 'value: `stored-value-${run}`'
writeFileSync(
  join(handlers, 'index.js'),
  `import { valueOf } from '../lib/value.js'\n${readFileSync(
    new URL('../../fixtures/payments/handlers/index.js', import.meta.url),
    'utf8',
  ).replace(VALUE, 'value: valueOf(run)')}`,
)
const valueModule = (word: string): string =>
  `import { sign } from './sign.cjs'\nexport const valueOf = (run) => \`${word}\${sign}\${run}\`\n`
writeFileSync(join(library, 'value.js'), valueModule('old'))
writeFileSync(join(library, 'sign.cjs'), `exports.sign = '-'\n`)
const shop = await openShop(async () => ({ CATALOG: catalog }), ['--watch'])
t.teardown(async () => {
  await shop.close()
  rmSync(directory, { recursive: true, force: true })
})
const marksOf = (...files: readonly string[]): ReadonlyMap<string, string> =>
  new Map(files.map((file) => [file, markNow(file)]))
const reloads = (): number => [...shop.server.output().matchAll(/revision \S+ → /g)].length

async function buy(n: number): Promise<Response> {
  return stockFetch(await shop.wallet())(`${shop.url}/paid/work?n=${n}`)
}

async function valueOf(response: Response): Promise<string> {
  const body: Json = JSON.parse(await response.text())
  const value = at(body, 'value')
  return typeof value === 'string' ? value : ''
}

/** Writes a module that the handlers import, and waits until a process has loaded them again, or tried to. */
async function edit(name: string, text: string): Promise<void> {
  const tries = (): number =>
    [...shop.server.output().matchAll(/^handlers loaded again|still serving the handlers/gm)].length
  const before = tries()
  writeFileSync(join(library, name), text)
  await until(`${name} is noticed`, () => tries() > before)
}

interface Offer {
  readonly status: number
  /** Every number of a revision that the answer mentions. */
  readonly revisions: ReadonlySet<number>
}

async function offer(): Promise<Offer> {
  const response = await fetch(`${shop.url}/paid/work`)
  const header = readHeader(response, 'payment-required')
  const body: unknown = await response.json()
  if (!isJsonObject(body)) throw new Error('no offer')
  const amounts = [at(header, 'accepts', 0, 'amount'), at(body, 'accepts', 0, 'maxAmountRequired')].map(
    Number,
  )
  const prices = [Number(at(body, 'price', 'amount')) * 1e6]
  const said = JSON.stringify([header, body]).matchAll(/Revision (\d+)/g)
  return {
    status: response.status,
    revisions: new Set([
      ...[...amounts, ...prices].map((amount) => Math.round((amount - 10_000) / 100)),
      ...[...said].map(([, number]) => Number(number)),
    ]),
  }
}

async function offered(): Promise<number | undefined> {
  const { revisions } = await offer()
  return revisions.size === 1 ? [...revisions][0] : undefined
}

const served = (revision: number): Promise<true> =>
  until(`revision ${revision} is served`, async () => (await offered()) === revision)

t.test('asks for an edited price without a signal, in whatever way the editor writes', async (t) => {
  writeFileSync(catalog, textOf(1))
  await served(1)
  writeFileSync(`${catalog}~`, textOf(2))
  renameSync(`${catalog}~`, catalog)
  await served(2)
  rmSync(catalog)
  await delay(50)
  writeFileSync(catalog, textOf(3))
  await served(3)
  t.notMatch(shop.server.output(), /still serving revision/)
})

t.test('reloads a catalog behind a symbolic link when the link changes, as clusters mount it', async () => {
  for (const [folder, revision] of [
    ['one', 4],
    ['two', 5],
  ] as const) {
    mkdirSync(join(directory, folder))
    writeFileSync(join(directory, folder, 'catalog.yaml'), textOf(revision))
    symlinkSync(folder, join(directory, 'turned'))
    renameSync(join(directory, 'turned'), join(directory, 'data'))
    if (folder === 'one') {
      rmSync(catalog)
      symlinkSync(join('data', 'catalog.yaml'), catalog)
    }
    await served(revision)
  }
  rmSync(catalog)
  writeFileSync(catalog, textOf(5))
})

t.test('shows an edited example in the documents', async () => {
  writeFileSync(example, '{"work":"quetzal"}')
  await until('the example is served', async () =>
    (await (await fetch(`${shop.url}/docs.md`)).text()).includes('quetzal'),
  )
})

t.test('keeps the last good revision while the catalog has an error, and reports it', async (t) => {
  const refused = async (): Promise<unknown> => {
    const status: unknown = await (await fetch(`${shop.url}/status.json`)).json()
    return isJsonObject(status) ? at(status, 'refused_reload') : undefined
  }
  writeFileSync(catalog, textOf(6, '0.0000001'))
  await shop.server.said(/catalog\.yaml:6:\d+ price[^]*still serving revision/)
  t.match(await refused(), { errors: [{ code: /^price/, line: 6 }] })
  t.equal(await offered(), 5)
  rmSync(example)
  writeFileSync(catalog, textOf(6))
  await shop.server.said(/example_unreadable/)
  t.equal(await offered(), 5)
  writeFileSync(example, '{"work":"third"}')
  await served(6)
  t.equal(await refused(), null)
})

t.test('sees a change without an event, on a disk that sends none', async (t) => {
  const folder = t.testdir({ one: { file: 'first' }, two: { file: 'second' } })
  symlinkSync('one', join(folder, 'link'))
  const file = join(folder, 'link', 'file')
  const watch = new Watch(() => performance.now(), undefined, 50)
  watch.note(marksOf(file))
  const seen = new Promise<void>((resolve) => watch.start(async () => resolve()))
  // The folder of the file stays as it is: only the link above it is turned.
  symlinkSync('two', join(folder, 'next'))
  renameSync(join(folder, 'next'), join(folder, 'link'))
  await seen
  watch.stop()
})

t.test(
  'sees a replaced file and a new one by their events alone, and looks at nothing without one',
  async (t) => {
    // What is next to the folder is watched too: tests of other processes create theirs next to that of this test.
    const folder = join(t.testdir({ folder: { file: 'first' } }), 'folder')
    const file = join(folder, 'file')
    let looks = 0
    const looking = async (path: string): Promise<BigIntStats> => {
      looks += 1
      return stat(path, { bigint: true })
    }
    const watch = new Watch(() => performance.now(), looking, 2 ** 30)
    const changes: string[] = []
    const note = (): void => watch.note(marksOf(folder, file))
    note()
    watch.start(async () => {
      note()
      changes.push(readFileSync(file, 'utf8'))
    })
    t.teardown(() => watch.stop())
    await until('the first looks are over', async () => {
      // The events of the folder's own making may still come.
      const before = looks
      await delay(400)
      return looks > 0 && looks === before
    })
    const looked = looks
    await delay(500)
    t.equal(looks, looked)
    writeFileSync(`${file}~`, 'second')
    renameSync(`${file}~`, file)
    await until('the replaced file is seen', () => changes.at(-1) === 'second')
    writeFileSync(join(folder, 'new'), 'x')
    await until('the new file is seen', () => changes.length > 1)
  },
)

t.test('waits until a catalog is written completely', async (t) => {
  const file = join(directory, 'slow.yaml')
  writeFileSync(file, 'begun')
  const watch = new Watch(() => performance.now())
  watch.note(marksOf(file))
  const read: number[] = []
  watch.start(async () => {
    watch.note(marksOf(file))
    read.push(readFileSync(file, 'utf8').length)
  })
  for (let piece = 0; piece < 30; piece += 1) {
    writeFileSync(file, 'x'.repeat(piece))
    await delay(20)
  }
  await until('it is read', () => read.length > 0)
  watch.stop()
  t.strictSame(read, [29])
})

/** A busy machine may leave the node too little time to check a payment: nothing is charged, and it is sent again. */
async function sendUntilChecked(request: Request): Promise<Response> {
  for (;;) {
    const response = await fetch(request.clone())
    if (response.status !== 503) return response
    const { code, charged } = Object(await response.clone().json())
    if (code !== 'chain_unavailable' || charged !== 'no') return response
    await delay(200)
  }
}

t.test('answers every request by one revision while the file changes five times a second', async (t) => {
  const before = reloads()
  const wrong: unknown[] = []
  const seen = new Set<number>()
  let going = true
  const lookers = Array.from({ length: 42 }, async () => {
    while (going) {
      const { status, revisions } = await offer()
      if (status !== 402 || revisions.size !== 1) wrong.push({ status, revisions: [...revisions] })
      for (const revision of revisions) seen.add(revision)
    }
  })
  const readers = Array.from({ length: 2 }, async () => {
    while (going) {
      const text = await (await fetch(`${shop.url}/openapi.json`)).text()
      const said = new Set([...text.matchAll(/Revision (\d+)/g)].map(([, number]) => number))
      const prices = new Set([...text.matchAll(/"(0\.01\d\d)(?:00)?"/g)].map(([, price]) => price))
      const [number] = said
      if (said.size !== 1 || prices.size !== 1 || !prices.has(priceOf(Number(number))))
        wrong.push({ said: [...said], prices: [...prices] })
    }
  })
  const buyers: { readonly key: Hex; readonly signed: Set<string>; bought: number }[] = []
  while (buyers.length < 6) buyers.push({ key: await shop.wallet(), signed: new Set(), bought: 0 })
  const buying = buyers.map(async (buyer, place) => {
    const noting: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      const header = request.headers.get('payment-signature')
      const payment = header === null ? undefined : JSON.parse(Buffer.from(header, 'base64').toString())
      const { nonce, value } = Object(payment?.payload?.authorization)
      if (nonce !== undefined) buyer.signed.add(`${nonce} ${value}`)
      return sendUntilChecked(request)
    }
    const pay = stockFetch(buyer.key, noting)
    while (going) {
      buyer.bought += 1
      const response = await pay(`${shop.url}/paid/work?n=${place * 1_000 + buyer.bought}`)
      if (response.status !== 200) wrong.push({ status: response.status, body: await response.text() })
      else await response.body?.cancel()
    }
  })
  let last = 7
  for (; last < 32 || (last < 99 && (seen.size < 4 || reloads() - before < 3)); last += 1) {
    writeFileSync(catalog, textOf(last))
    await delay(200)
  }
  await served(last - 1)
  going = false
  await Promise.all([...lookers, ...readers, ...buying])
  t.strictSame(wrong, [])
  t.ok(seen.size > 3, `answers came from ${seen.size} revisions`)
  t.ok(reloads() - before >= 3)
  const signed = buyers.flatMap((buyer) => [...buyer.signed])
  const bought = buyers.reduce((sum, buyer) => sum + buyer.bought, 0)
  t.comment(`${bought} purchases, ${seen.size} revisions seen`)
  t.equal(signed.length, bought, 'nobody has signed twice')
  const uses = new Set((await shop.onchain.uses()).map(({ nonce }) => nonce))
  t.strictSame(
    signed.filter((each) => !uses.has((each.split(' ')[0] ?? '') as `0x${string}`)),
    [],
    'all of it was charged',
  )
  const amounts = (values: readonly string[]): string[] => values.toSorted()
  t.strictSame(
    amounts((await shop.onchain.received(shop.payTo)).map(String)),
    amounts(signed.map((each) => each.split(' ')[1] ?? '')),
    'what was signed is what was charged, once',
  )
  t.ok(
    signed.every((each) =>
      Array.from({ length: last }, (_, n) => atomic(n)).includes(each.split(' ')[1] ?? ''),
    ),
  )
})

t.test(
  'serves an edited handler while a paid call is in flight, which the old one answers for one charge',
  async (t) => {
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const before = shop.upstream.runs()
    shop.upstream.during(() => (shop.upstream.runs() === before + 1 ? finished : Promise.resolve()))
    const charges = (await shop.onchain.uses()).length
    const long = buy(90_001)
    await until('the work has begun', () => shop.upstream.runs() > before)
    await edit('value.js', valueModule('new'))
    t.equal(await valueOf(await buy(90_002)), `new-${before + 2}`, 'a new call meets the new handler')
    finish()
    t.equal(await valueOf(await long), `old-${before + 1}`)
    t.equal((await shop.onchain.uses()).length, charges + 2, 'two calls, two charges')
    t.equal(shop.upstream.runs(), before + 2, 'and two runs')
    shop.upstream.during(async () => undefined)
  },
)

t.test('loads a CommonJS module of the handlers again', async (t) => {
  await edit('sign.cjs', `exports.sign = '+'\n`)
  t.match(await valueOf(await buy(90_003)), /^new\+/)
})

t.test('keeps the loaded handlers while an edited one has errors', async (t) => {
  await edit('value.js', 'export const valueOf = ')
  await shop.server.said(/index\.js cannot be loaded: SyntaxError[^]*still serving the handlers/)
  t.match(await valueOf(await buy(90_004)), /^new\+/)
  await edit('value.js', `${valueModule('newest')}export * from './more.js'`)
  t.match(await valueOf(await buy(90_005)), /^new\+/, 'a module is missing')
  await edit('more.js', 'export {}\n')
  t.match(await valueOf(await buy(90_006)), /^newest\+/, 'and written')
})

t.test('the server stays healthy through all of this', async (t) => {
  t.notMatch(shop.output(), /unexpected|Unhandled|Warning/)
})

t.test('keeps serving while a mount hangs, with one thread waiting for it', async (t) => {
  const asked: string[] = []
  const hangs = async (path: string): Promise<BigIntStats> => {
    asked.push(path)
    return new Promise(() => undefined)
  }
  const watch = new Watch(() => performance.now(), hangs)
  watch.note(marksOf(catalog, example))
  watch.start(async () => void t.fail('nothing has changed'))
  await until('the first file is looked at', () => asked.length > 0)
  await delay(500)
  t.strictSame(asked, [catalog])
  watch.stop()
})

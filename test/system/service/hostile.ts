import t from 'tap'
import { loadCatalog } from '../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../src/engine/documents/all.ts'
import { schemaDifferences } from '../../support/service/answer-shape.ts'
import { writeOpenCatalog } from '../../fuzz/support/open-catalog.ts'
import { targetsOf, type Target } from '../../fuzz/support/request-targets.ts'
import { startServer } from '../../support/server.ts'

const catalog = writeOpenCatalog((path) => /^\/paid\/(?:util|services)\//.test(path))
t.teardown(() => catalog.remove())
const server = await startServer({ args: ['--sandbox', '--offline', '--catalog', catalog.file] })
t.teardown(() => server.stop())
const { catalog: compiled } = loadCatalog(catalog.file, { handlers: undefined, documents: documentNames })
const targets = targetsOf(compiled).filter(({ path }) => /^\/(?:sample|open)\/(?:util|services)\//.test(path))

/** What has broken services of this kind before. */
const VALUES: readonly string[] = [
  '',
  ' ',
  '\0',
  '\r\nSet-Cookie: a=b',
  '\u202egnp.exe',
  '\ufeff',
  '\u0301'.repeat(500),
  '💥'.repeat(100),
  'ﷺ'.repeat(500),
  'İ'.repeat(300),
  'a'.repeat(20_000),
  ' a'.repeat(5_000),
  '0',
  '-1',
  '1e308',
  'NaN',
  'Infinity',
  '99999999999999999999',
  '2026-02-30',
  '9999-12-31',
  'null',
  '[]',
  '{"a":1e999,"__proto__":{"x":1}}',
  '['.repeat(5_000),
  '$..*',
  '(a+)+$',
  '__proto__',
  'constructor',
  '../../../etc/passwd',
  "' OR 1=1 --",
  '<script>alert(1)</script>',
  '{{7*7}}${7*7}%s%n',
  'file:///etc/passwd',
  'http://[::ffff:169.254.169.254]/',
  'http://localhost:6379/',
  'javascript:alert(1)',
  '"a b"@example.com',
  'a@b@c@example.com',
  `10.5555/${'%2e%2e/'.repeat(20)}`,
  'US,DE,,JP',
]
/** As they are in the query, which no browser would write. */
const RAW = ['%', '%zz', '%ff', '%c3%28', '%ed%a0%80', '%00', '+', '=', '&&', '%u0041']

/** Refusals, and sources that are asked too often or fail: everything a buyer is told who is not charged. */
const TOLD: ReadonlySet<number> = new Set([200, 404, 422, 431, 502, 503, 504])
const LEAKS =
  /node_modules|node:internal|\bat [\w.<>]+ \((?:file:|node:|\/)|\.[jt]s:\d+|TypeError|SyntaxError|RangeError|ECONN|ENOENT/

/** Valid values of the other parameters that a value is combined with, at most. */
const MOST_COMBINATIONS = 16
/** `npm run fuzz` combines each value with each; the suite with the usual ones, and with one of the rest in turn. */
const COMBINES_ALL = process.env['FUZZ_CASES'] !== undefined

/** Each value in each parameter: alone, and next to valid values of the others, of each word where a parameter takes few. */
function queriesOf({ parameters }: Target): string[] {
  return parameters.flatMap(({ name }) => {
    const others = parameters.filter((each) => each.name !== name && each.fitting.length > 0)
    const usual = others.map((each) => pair(each.name, each.fitting[0] ?? ''))
    const chosen = others.flatMap((each) =>
      each.fitting.slice(1).map((value) => [...usual, pair(each.name, value)]),
    )
    const rest = chosen.slice(0, MOST_COMBINATIONS - 2)
    return [...VALUES.map(encodeURIComponent), ...RAW].flatMap((value, place) => {
      const turn = rest.length === 0 ? [] : rest.slice(place % rest.length, (place % rest.length) + 1)
      return [[], usual, ...(COMBINES_ALL ? rest : turn)].map((each) =>
        [...each, `${name}=${value}`].join('&'),
      )
    })
  })
}

function pair(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value)}`
}

/** What is wrong with the answer; nothing when a caller can live with it. */
async function complaint(template: string, address: string): Promise<string[]> {
  const response = await fetch(server.url + address, { signal: AbortSignal.timeout(60_000) })
  const text = await response.text()
  const shown = address.slice(0, 120)
  if (!TOLD.has(response.status)) return [`${response.status} ${shown}`]
  // Node refuses what is too long by itself, without a body of ours.
  if (response.status === 431) return []
  const answered: unknown = JSON.parse(text)
  if (response.status === 200) {
    // Opened routes are those that are paid for.
    const differs = schemaDifferences(template.replace(/^\/open\//, '/paid/'), answered)
    // One line for each kind: a field that is wrong is wrong in every answer.
    if (differs.length > 0) return differs.map((each) => each.replace(/\/\d+/g, '/#'))
  }
  const isOurs = typeof answered === 'object' && answered !== null
  return isOurs && (response.status === 200 || !LEAKS.test(text)) ? [] : [`${text.slice(0, 200)} ${shown}`]
}

t.ok(targets.length >= 30, 'every utility, paid and sample')
for (const target of targets) {
  t.test(`${target.template}: answers any value of a parameter in time, without internals`, async (t) => {
    const queue = queriesOf(target).map((query) => `${target.path}?${query}`)
    const complaints = new Set<string>()
    const worker = async (): Promise<void> => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop())
        for (const each of await complaint(target.template, next)) complaints.add(each)
    }
    await Promise.all([worker(), worker(), worker(), worker()])
    t.strictSame([...complaints], [])
  })
}

t.test('the server still answers after all of this', async (t) => {
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  t.equal(server.process.exitCode, null)
})

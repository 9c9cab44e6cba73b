import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CatalogError, type Issue } from '../../../../src/engine/catalog/issue.ts'
import { compileText } from '../../../../src/engine/catalog/load-catalog.ts'

/**
 * Each fixture is a catalog, a line of dashes, and what an operator should read: the issues in the order of the file
 * (`line:column code message`), or the compiled catalog as JSON. `# partial` on the first line of the JSON: objects
 * may hold more than is written, lists may not. Amounts are micro-dollars in quotes.
 */
const folder = fileURLToPath(new URL('../../../fixtures/catalogs/', import.meta.url))
const files = new Map([
  ['./good.json', '{"ok":true,"items":[1,2]}'],
  ['./broken.json', '{"ok":'],
  ['./note.html', '<p>hello</p>'],
  [
    './denied.txt',
    '# nobody we know\r\n0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed # twice\n\n0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED\n0x1111111111111111111111111111111111111111',
  ],
  ['./customers.txt', `${'a'.repeat(64)} acme\n`],
  ['./mistyped.txt', '0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\n# short\n0x12\n'],
])
const surroundings = {
  handlers: ['ping', 'util/workday', 'util/echo'],
  documents: ['index', 'health', 'openapi', 'llms', 'x402-resources'],
  read: (path: string) => {
    const text = files.get(path)
    return text === undefined ? undefined : Buffer.from(text)
  },
}

interface Outcome {
  readonly issues: readonly Issue[]
  readonly catalog: unknown
}

function outcomeOf(text: string): Outcome {
  try {
    const { catalog, warnings } = compileText('catalog.yaml', text, surroundings)
    return { issues: warnings, catalog: plain(catalog) }
  } catch (fault) {
    if (!(fault instanceof CatalogError)) throw fault
    return { issues: fault.issues, catalog: undefined }
  }
}

function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (key, each: unknown) => {
    if (key === 'revision') return undefined
    return typeof each === 'bigint' ? each.toString() : each
  })
  return JSON.parse(text)
}

function tell({ severity, code, message, position }: Issue): string {
  const mark = severity === 'warning' ? 'warning ' : ''
  return `${position.line}:${position.column} ${mark}${code} ${message}`
}

/** The part of the value that the pattern mentions. */
function part(value: unknown, pattern: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(pattern))
    return value.map((item, index) => part(item, pattern[index]))
  if (!isObject(value) || !isObject(pattern)) return value
  return Object.fromEntries(
    Object.entries(pattern)
      .filter(([key]) => Object.hasOwn(value, key))
      .map(([key, below]) => [key, part(value[key], below)]),
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .sort()

t.ok(names.length >= 75, `${names.length} catalogs are tried`)

for (const name of names) {
  t.test(`reports exactly the expected issues of ${name.replace('.txt', '')}`, async (t) => {
    const raw = readFileSync(`${folder}/${name}`, 'utf8')
    const line = /^-{10,}\n/m.exec(raw)
    if (line === null) return t.fail('a line of dashes divides catalog and expectation')
    const [text, expected] = [raw.slice(0, line.index), raw.slice(line.index + line[0].length)]
    const { issues, catalog } = outcomeOf(text)
    const json = /^(?:# partial\n)?(?=\{)/.exec(expected)
    const update = process.env['UPDATE_GOLDEN'] !== undefined
    if (json === null) {
      const head = raw.slice(0, line.index + line[0].length)
      if (update) writeFileSync(`${folder}/${name}`, `${head}${issues.map(tell).join('\n')}\n`)
      const lines = expected.trimEnd().split('\n')
      t.strictSame(issues.map(tell), lines)
      const refused = lines.some((each) => !/^\d+:\d+ warning /.test(each))
      t.equal(catalog === undefined, refused, 'only errors refuse a catalog')
      return
    }
    t.strictSame(issues.map(tell), [], 'a sound catalog is not complained about')
    const pattern: unknown = JSON.parse(expected.slice(json[0].length))
    t.strictSame(json[0] === '' ? catalog : part(catalog, pattern), pattern)
  })
}

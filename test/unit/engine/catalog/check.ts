import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CatalogError, formatIssue, type Issue } from '../../../../src/engine/catalog/issue.ts'
import { compileText } from '../../../../src/engine/catalog/load-catalog.ts'
import { catalogSchema } from '../../../../src/engine/catalog/schema.ts'
import { documentNames } from '../../../../src/engine/documents/all.ts'
import { fc } from '../../../support/fast-check.ts'

/** A short catalog with every kind of entry. */
const sample = readFileSync(
  fileURLToPath(new URL('../../../fixtures/documents/catalog.yaml', import.meta.url)),
  'utf8',
)
const lines = sample.split('\n')

function issuesOf(text: string): readonly Issue[] {
  try {
    return compileText('catalog.yaml', text, {
      handlers: undefined,
      documents: documentNames,
      // A schema, and a list of addresses.
      read: (path) => Buffer.from(path.endsWith('.txt') ? `0x${'1'.repeat(40)}\n` : '{}'),
    }).warnings
  } catch (fault) {
    if (fault instanceof CatalogError) return fault.issues
    throw fault
  }
}

/** Every issue can be shown, at a place of the text, once, and in the order of the file. */
function isWellTold(issues: readonly Issue[], text: string): boolean {
  const told = issues.map((issue) => formatIssue(issue, 'c', text))
  const sorted = issues.every(
    ({ position }, index) => position.line >= (issues[index - 1]?.position.line ?? 0),
  )
  const count = text.split('\n').length
  return (
    sorted &&
    new Set(told).size === told.length &&
    issues.every(
      ({ position, message }) =>
        position.line >= 1 &&
        position.line <= count &&
        position.column >= 1 &&
        !/undefined|\[object/.test(message),
    )
  )
}

const place = fc.integer({ min: 0, max: lines.length - 1 })
const SIGNS = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ': ',
  '- ',
  '"',
  "'",
  '#',
  '&a ',
  '*a',
  '|',
  '>',
  '!',
  '%',
  '@',
  '\t',
  '\0',
  ',',
]
const WORDS = [
  'null',
  'true',
  '1',
  '-1',
  '.nan',
  '~',
  '[]',
  '{}',
  '[1]',
  '{a}',
  '""',
  '<<',
  '__proto__',
  '1e999',
]

t.test('reports every typing error in a catalog with a position', async () => {
  const slip = fc.tuple(place, fc.integer({ min: 0, max: 60 }), fc.constantFrom(...SIGNS), fc.boolean())
  const texts = slip.map(([line, column, sign, replace]) => {
    const old = lines[line] ?? ''
    const next = old.slice(0, column) + sign + old.slice(replace ? column + sign.length : column)
    return lines.with(line, next).join('\n')
  })
  fc.assert(
    fc.property(texts, (text) => isWellTold(issuesOf(text), text)),
    { numRuns: 60 },
  )
})

t.test('reports every value of a wrong kind with a position', async () => {
  const texts = fc
    .tuple(place, fc.constantFrom(...WORDS))
    .map(([line, word]) => lines.with(line, (lines[line] ?? '').replace(/:.*$/, `: ${word}`)).join('\n'))
  fc.assert(
    fc.property(texts, (text) => isWellTold(issuesOf(text), text)),
    { numRuns: 60 },
  )
})

t.test('reports every lost or repeated line with a position', async () => {
  const texts = fc
    .tuple(place, place, fc.boolean())
    .map(([from, to, lost]) =>
      lost ? lines.toSpliced(from, 1 + (to % 5)) : lines.toSpliced(to, 0, lines[from] ?? ''),
    )
    .map((each) => each.join('\n'))
  fc.assert(
    fc.property(texts, (text) => isWellTold(issuesOf(text), text)),
    { numRuns: 60 },
  )
})

t.test('reports errors for any text whatsoever', async () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => issuesOf(text).length > 0))
  fc.assert(
    fc.property(fc.stringMatching(/^[a-c:{}[\]"'&*#|>\- \n]{0,60}$/), (text) => issuesOf(text).length > 0),
  )
})

const sound = fileURLToPath(new URL('../../../fixtures/catalogs/sound/', import.meta.url))

/** The words of the catalog's language, as against the names operators choose. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const entries: [string, unknown][] = Object.entries(schema)
  return entries.flatMap(([key, value]) =>
    key === 'properties' && typeof value === 'object' && value !== null
      ? [...Object.keys(value), ...Object.values(value).flatMap(keysOf)]
      : keysOf(value),
  )
}

const keys = new Set(keysOf(catalogSchema))

t.test('reports one misspelt key as one issue, at that key', async (t) => {
  let tried = 0
  for (const name of readdirSync(sound).filter((each) => each.endsWith('.txt'))) {
    const [text = ''] = readFileSync(`${sound}/${name}`, 'utf8')
      .replace(/^\ufeff/, '')
      .split(/^-{10,}$/m)
    for (const match of text.matchAll(/(?<=^ *|[{,] )[a-zA-Z0-9_]+(?=: |:\r?$)/gm)) {
      const [key] = match
      if (!keys.has(key)) continue
      tried += 1
      const before = text.slice(0, match.index)
      const issues = issuesOf(`${before}${key}x${text.slice(match.index + key.length)}`)
      const column = match.index - before.lastIndexOf('\n')
      const told = issues.map(({ code, position }) => `${position.line}:${position.column} ${code}`)
      t.strictSame(told, [`${before.split('\n').length}:${column} key_unknown`], `${name}: ${key}x`)
    }
  }
  t.ok(tried > 300, `${tried} keys`)
})

import { readFileSync } from 'node:fs'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parse } from 'csv-parse/sync'
import { readName } from '../../dist/service/sources/sanctions/name.js'
import { readList } from '../../dist/service/sources/sanctions/list-reader.js'
import { NameIndex } from '../../dist/service/sources/sanctions/name-index.js'

/**
 * Recall and false alarms of the name lookup, as one table of any number of lists: `npm run build && node
 * test/bench/sanctions.mjs [ofac|un|uk|eu=FILE …] [aliases=FILE] [not-listed=FILE …] [most=N]`. `aliases` is OFAC's
 * ALT.CSV, `not-listed` has a name a line, `most` is the size of a sample. With the lists of the UK and the UN, entries
 * that the UK took over from the UN are looked up in the UN's list by the UK's own spelling. Without arguments it takes the
 * list and the names of test/fixtures/sanctions. It judges nothing.
 */
const FIXTURES = fileURLToPath(new URL('../fixtures/sanctions/', import.meta.url))
const THRESHOLD = 0.85

const given = argv.slice(2).map((word) => word.split(/=(.*)/s))
const [most = 500] = given.flatMap(([key, number]) => (key === 'most' ? [Number(number)] : []))
const filesOf = (name) => given.flatMap(([key, file]) => (key === name ? [file] : []))
const cases = JSON.parse(readFileSync(`${FIXTURES}cases.json`, 'utf8'))
const notListed = filesOf('not-listed').flatMap((file) =>
  readFileSync(file, 'utf8').split('\n').filter(Boolean),
)

let state = 20261121
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const cut = (text, at, gone, put) => text.slice(0, at) + put + text.slice(at + gone)
const WAYS = {
  'as listed': (name) => name,
  'two letters swapped': (name, at) => cut(name, at, 2, `${name[at + 1] ?? ''}${name[at]}`),
  'a letter dropped': (name, at) => cut(name, at, 1, ''),
  'a letter replaced': (name, at) => cut(name, at, 1, LETTERS[random(26)]),
  'words reversed': (name) => name.split(/\s+/).reverse().join(' '),
  'first and last word': (name) =>
    name
      .split(/\s+/)
      .filter((_, place, all) => place % (all.length - 1) === 0)
      .join(' '),
}

const took = []
const bestOf = (index, name) => {
  const start = performance.now()
  const [hit] = index.search(readName(name), THRESHOLD)
  took.push(performance.now() - start)
  return hit
}
const row = (...cells) => console.log(`| ${cells.join(' | ')} |`)
const share = (part, whole) => `${part} of ${whole} (${((100 * part) / whole).toFixed(1)} %)`

/** Every so many, so that all parts of a list are met. */
const sample = (all) => all.filter((_, place) => place % Math.ceil(all.length / most) === 0)

row('list', 'entries', 'measure', 'reached')
row('---', '---', '---', '---')
const indexes = new Map()
const lists = given.filter(([key]) => ['ofac', 'un', 'uk', 'eu'].includes(key))
for (const [format, file] of lists.length > 0 ? lists : [['ofac', `${FIXTURES}ofac.xml`]]) {
  const [aliases] = format === 'ofac' ? filesOf('aliases') : []
  const content = { main: readFileSync(file), aliases: aliases && readFileSync(aliases) }
  const { entries } = await readList(format, content, async () => {})
  const index = new NameIndex()
  for (const entry of entries) index.add(entry)
  indexes.set(format, { index, numbers: new Set(entries.map(({ uid }) => uid)) })
  const count = entries.length
  if (lists.length === 0) {
    const right = cases.found.filter(([name, uid]) => bestOf(index, name)?.entry.uid === uid)
    row(format, count, 'names of the cases, the right entry first', share(right.length, cases.found.length))
  }
  for (const [kind, many] of [
    ['individual', 'people'],
    ['entity', 'organizations'],
  ]) {
    const some = sample(entries.filter((entry) => entry.kind === kind && entry.names[0]?.text.includes(' ')))
    for (const [way, spoil] of Object.entries(WAYS)) {
      if (kind === 'entity' && way === 'first and last word') continue
      const found = some.filter(({ names: [{ text }] }) => {
        const hit = bestOf(index, spoil(text, random(text.length - 1)))
        // Lists have entries of one name; the other is as good.
        return hit?.entry.names.some((name) => name.text === text)
      })
      row(format, count, `${many} first, ${way}`, share(found.length, some.length))
    }
  }
  const names = notListed.length > 0 ? sample(notListed) : cases.not_found
  const alarms = names.filter((name) => bestOf(index, name) !== undefined)
  row(format, count, 'names that are not listed, with a match', share(alarms.length, names.length))
  if (alarms.length > 0) console.log(`<!-- ${alarms.slice(0, 40).join('; ')} -->`)
}

const [uk] = filesOf('uk')
const un = indexes.get('un')
if (uk !== undefined && un !== undefined) {
  const [, header, ...lines] = parse(readFileSync(uk), {
    relax_column_count: true,
    relax_quotes: true,
    bom: true,
  })
  const at = (name) => header.indexOf(name)
  const parts = ['Name 1', 'Name 2', 'Name 3', 'Name 4', 'Name 5', 'Name 6'].map(at)
  const pairs = lines.flatMap((line) => {
    const number = line[at('UN Reference Number')]?.trim()
    const isOwn = /^primary name$/i.test(line[at('Name type')] ?? '')
    return number && isOwn
      ? [
          {
            number,
            name: parts
              .map((part) => line[part])
              .filter(Boolean)
              .join(' '),
          },
        ]
      : []
  })
  const asked = sample(pairs.filter(({ number }) => un.numbers.has(number)))
  const missed = asked.filter(({ number, name }) => bestOf(un.index, name)?.entry.uid !== number)
  row(
    'un',
    '',
    'entries of the UK with a UN number, found by the UK’s spelling',
    share(asked.length - missed.length, asked.length),
  )
  console.log(
    `<!-- ${missed
      .slice(0, 40)
      .map(({ number, name }) => `${number} ${name}`)
      .join('; ')} -->`,
  )
}

took.sort((a, b) => a - b)
const part = (quantile) => (took[Math.floor((took.length - 1) * quantile)] ?? 0).toFixed(1)
console.log(`\na search takes ${part(0.5)} ms (median), ${part(0.99)} ms (p99)`)

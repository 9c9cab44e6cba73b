import { readFileSync } from 'node:fs'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'
import { readName } from '../../dist/service/sources/sanctions/name.js'
import { readList } from '../../dist/service/sources/sanctions/reading.js'
import { Register } from '../../dist/service/sources/sanctions/register.js'

/**
 * Recall and false alarms of the name lookup, on the cases of test/fixtures/sanctions and on random typing errors in every
 * name of the list: `npm run build && node test/bench/sanctions.mjs [list.xml]`. It judges nothing.
 */
const FIXTURES = fileURLToPath(new URL('../fixtures/sanctions/', import.meta.url))
const THRESHOLD = 0.85

const file = argv[2] ?? `${FIXTURES}ofac.xml`
const cases = JSON.parse(readFileSync(`${FIXTURES}cases.json`, 'utf8'))
const began = performance.now()
const { entries } = await readList('ofac', { main: readFileSync(file) }, async () => {})
const register = new Register()
for (const entry of entries) register.add(entry)
console.log(`${file}: ${entries.length} entries, ready in ${Math.round(performance.now() - began)} ms\n`)

const bestOf = (name, threshold = 0) => register.search(readName(name), threshold)[0]
const shown = (hit) => (hit === undefined ? '-' : `${hit.score.toFixed(3)}  ${hit.name.text}`)

console.log('should be found')
const right = cases.found.filter(([name, uid]) => {
  const hit = bestOf(name)
  const isRight = hit !== undefined && hit.entry.uid === uid && hit.score >= THRESHOLD
  console.log(`  ${isRight ? ' ' : '✗'} ${name.padEnd(28)} ${shown(hit)}`)
  return isRight
})
console.log('\nshould not be found')
const alarms = cases.not_found.filter((name) => {
  const hit = bestOf(name)
  const isAlarm = hit !== undefined && hit.score >= THRESHOLD
  console.log(`  ${isAlarm ? '✗' : ' '} ${name.padEnd(28)} ${shown(hit)}`)
  return isAlarm
})
console.log('\nknown to be wrong')
for (const [name] of cases.alarms_known) console.log(`    ${name.padEnd(28)} ${shown(bestOf(name))}`)
console.log(
  `\nrecall ${right.length}/${cases.found.length}, false alarms ${alarms.length}/${cases.not_found.length}`,
)

let state = 20261121
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const cut = (text, at, gone, put) => text.slice(0, at) + put + text.slice(at + gone)
const ERRORS = {
  'as it stands': (name) => name,
  'two letters swapped': (name, at) => cut(name, at, 2, `${name[at + 1] ?? ''}${name[at]}`),
  'a letter dropped': (name, at) => cut(name, at, 1, ''),
  'a letter replaced': (name, at) => cut(name, at, 1, LETTERS[random(26)]),
  'words reversed': (name) => name.split(/\s+/).reverse().join(' '),
  'first and last word only': (name) =>
    name
      .split(/\s+/)
      .filter((_, place, all) => place % (all.length - 1) === 0)
      .join(' '),
}
const people = entries
  .filter(({ kind, names }) => kind === 'individual' && names[0].text.includes(' '))
  .slice(0, 300)
const took = []
console.log(`\nentry found first, of ${people.length} people`)
for (const [title, spoil] of Object.entries(ERRORS)) {
  const found = people.filter(({ uid, names: [{ text }] }) => {
    const name = spoil(text, random(text.length - 1))
    const start = performance.now()
    const hit = bestOf(name, THRESHOLD)
    took.push(performance.now() - start)
    return hit?.entry.uid === uid
  })
  console.log(`  ${title.padEnd(28)} ${found.length}`)
}
took.sort((a, b) => a - b)
const part = (share) => (took[Math.floor((took.length - 1) * share)] ?? 0).toFixed(1)
console.log(`\na search takes ${part(0.5)} ms (median), ${part(0.99)} ms (p99)`)

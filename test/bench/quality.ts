/** Prints what the data products reach on public and hand-made sets: `npm run quality`. The suite holds the limits. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { references } from '../../src/service/handlers/util/citation/styles.ts'
import { screen } from '../../src/service/handlers/util/guard/screening.ts'
import { openEmbedded } from '../../src/service/memory/embedded.ts'
import { hashEmbedder } from '../../src/service/memory/hash-embedder.ts'
import { MemoryStore } from '../../src/service/memory/memory-store.ts'
import { migrate } from '../../src/service/memory/schema.ts'
import type { Message } from '../../src/service/sources/works/crossref-message.ts'
import { readMessage } from '../../src/service/sources/works/read-message.ts'
import { KINDS, readMemories, score } from './retrieval/measure.ts'

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const row = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(' | ')} |`)
const share = (part: number, whole: number): string =>
  `${part} of ${whole} (${((100 * part) / whole).toFixed(1)} %)`

row('product', 'measure', 'reached')
row('---', '---', '---')
measureCitations()
measureGuard()
await measureMemory()

function measureCitations(): void {
  const { works }: { works: readonly { message: Message; expected: Record<string, string> }[] } = JSON.parse(
    read('../fixtures/citations/works.json'),
  )
  const pairs = works.flatMap(({ message, expected }) =>
    Object.entries(references(readMessage(message))).map(([style, text]) => ({
      style,
      isEqual: text === expected[style],
    })),
  )
  const equal = pairs.filter(({ isEqual }) => isEqual).length
  row(
    'util/citation',
    'references equal to citeproc, 60 works of 12 types in 6 styles',
    share(equal, pairs.length),
  )
}

function measureGuard(): void {
  const own: Record<'attacks' | 'benign', readonly string[]> = parse(read('../service/fixtures/guard.yaml'))
  const found: Record<'benign' | 'direct' | 'indirect', readonly string[]> = JSON.parse(
    read('../fixtures/guard/public.json'),
  )
  for (const [name, texts] of [
    ['attacks, by hand', own.attacks],
    ['harmless texts, by hand', own.benign],
    ['direct attacks, public', found.direct],
    ['tasks hidden in documents, public', found.indirect],
    ['harmless texts, public', found.benign],
  ] as const) {
    const verdicts = texts.map((text) => screen(text).body['verdict'])
    const counts = ['block', 'review', 'allow'].map((verdict) => {
      const number = verdicts.filter((each) => each === verdict).length
      return `${verdict} ${number}`
    })
    row('util/guard', `${name} (${texts.length})`, counts.join(', '))
  }
}

async function measureMemory(): Promise<void> {
  const signal = new AbortController().signal
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-quality-'))
  const database = openEmbedded(folder)
  await migrate(database)
  const store = new MemoryStore(database, hashEmbedder)
  const memories = readMemories()
  const texts = memories.map(({ text }) => text)
  for (const [place, text] of texts.entries()) {
    const draft = { wallet: 'quality', text, tags: [], key: undefined }
    await store.prepare(String(place), draft, new Date(), signal)
    await store.commit(String(place))
  }
  const english = memories.flatMap(({ language }, place) => (language === 'en' ? [place] : []))
  const everywhere = texts.map((_, place) => place)
  for (const [name, asked] of [
    ['all languages', everywhere],
    ['English', english],
  ] as const)
    for (const kind of KINDS) {
      const places = []
      for (const meant of asked) {
        const query = memories[meant]?.[kind] ?? ''
        const hits = await store.search(
          { wallet: 'quality', query, most: 50, tags: [], since: undefined },
          signal,
        )
        const at = hits.findIndex(({ text }) => text === texts[meant])
        places.push(at < 0 ? Infinity : at + 1)
      }
      const reached = score(places)
      row(
        'memory_search',
        `${kind} questions, ${name} (${asked.length})`,
        `R@1 ${reached['R@1']}, R@5 ${reached['R@5']}`,
      )
    }
  await database.close()
  rmSync(folder, { recursive: true, force: true })
}

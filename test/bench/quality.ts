/** Prints what the data products reach on public and hand-made sets: `npm run quality`. The suite holds the limits. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { FREE_PROVIDERS, OFTEN_MISTYPED } from '../../src/service/data/mail-domains.ts'
import { references } from '../../src/service/handlers/util/citation/styles.ts'
import { suggestDomain } from '../../src/service/handlers/util/email-verify/typing-slip.ts'
import type { TextKind } from '../../src/service/handlers/util/guard/rules.ts'
import { screen } from '../../src/service/handlers/util/guard/screening.ts'
import { openCalendar } from '../../src/service/handlers/util/workday/calendar.ts'
import { addDays } from '../../src/service/handlers/util/workday/day.ts'
import { isWeekend, isWorkday } from '../../src/service/handlers/util/workday/working-day.ts'
import { openEmbedded } from '../../src/service/memory/embedded.ts'
import type { Embedder } from '../../src/service/memory/embedder.ts'
import { hashEmbedder } from '../../src/service/memory/hash-embedder.ts'
import { MemoryStore } from '../../src/service/memory/memory-store.ts'
import { migrate } from '../../src/service/memory/migrations.ts'
import { sentenceEmbedder } from '../../src/service/memory/sentence-embedder.ts'
import { findSentenceModel } from '../../src/service/sentences/sentence-model.ts'
import { readName } from '../../src/service/sources/sanctions/name.ts'
import { readList } from '../../src/service/sources/sanctions/list-reader.ts'
import { NameIndex } from '../../src/service/sources/sanctions/name-index.ts'
import type { Message } from '../../src/service/sources/works/crossref-message.ts'
import { readMessage } from '../../src/service/sources/works/read-message.ts'
import { compareOccasions, compareLimits, compareStorePages } from '../support/service/reference-data.ts'
import { packageDocuments, SEED } from './guard/documents.ts'
import { KINDS, readMemories, readNotes, score } from './retrieval/measure.ts'

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const row = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(' | ')} |`)
const share = (part: number, whole: number): string =>
  `${part} of ${whole} (${((100 * part) / whole).toFixed(1)} %)`

row('product', 'measure', 'reached')
row('---', '---', '---')
measureCitations()
await measureWorkdays()
await measureOccasions()
measureTypingSlips()
await measureSanctions()
measurePublicFigures()
measureGuard()
measureGuardOnDocuments()
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

/** Days of 2024 to 2030 in the countries of a second table. */
async function measureWorkdays(): Promise<void> {
  const second: Record<string, Record<string, string>> = parse(
    read('../fixtures/authority/second-holiday-table.yaml'),
  )
  let [days, verified, wrong] = [0, 0, 0]
  for (const [country, years] of Object.entries(second)) {
    const calendar = await openCalendar(country)
    if (calendar === undefined) throw new Error(`${country} is not known`)
    const marks = new Set(
      Object.entries(years).flatMap(([year, marked]) =>
        marked.split(' ').map((day) => day.replace(/^(\+?)/, `$1${year}-`)),
      ),
    )
    for (let day = '2024-01-01'; day <= '2030-12-31'; day = addDays(day, 1)) {
      days += 1
      if (calendar.doubtOf(day) !== undefined) continue
      verified += 1
      const works = isWeekend(calendar, day) ? marks.has(`+${day}`) : !marks.has(day)
      if (isWorkday(calendar, day) !== works) wrong += 1
    }
  }
  const countries = Object.keys(second).length
  row('util/workday', `days of ${countries} countries, 2024 to 2030, called verified`, share(verified, days))
  row('util/workday', 'verified days on which a second table differs', wrong)
}

async function measureOccasions(): Promise<void> {
  const { countries, equal, differing, explained } = await compareOccasions()
  const reasons = differing.filter((each) => explained.includes(each)).length
  row(
    'util/occasion',
    `dates of ${countries} countries, 2024 to 2030, equal to a second table`,
    `${share(equal, equal + differing.length)}; ${reasons} of the others with a reason`,
  )
}

/** Every swap of neighbours, missing letter and doubled letter in the names and endings of mail providers. */
function measureTypingSlips(): void {
  const domains = OFTEN_MISTYPED
  const slips = domains.flatMap((domain) =>
    Array.from(domain).flatMap((letter, at) => {
      const [before, after] = [domain.slice(0, at), domain.slice(at + 1)]
      const swapped = after === '' ? domain : `${before}${after.slice(0, 1)}${letter}${after.slice(1)}`
      return [swapped, before + after, before + letter + letter + after]
        .filter(
          (typed) => typed !== domain && !FREE_PROVIDERS.has(typed) && /^[^.].*[^.]\.[^.]+$/.test(typed),
        )
        .map((typed) => ({ typed, domain }))
    }),
  )
  const meant = slips.filter(({ typed, domain }) => suggestDomain(typed) === domain).length
  const other = slips.filter(
    ({ typed, domain }) => ![undefined, domain].includes(suggestDomain(typed)),
  ).length
  row(
    'util/email-verify',
    `slips in ${domains.length} mail domains that suggest the domain meant`,
    share(meant, slips.length),
  )
  row('util/email-verify', 'slips that suggest another domain', share(other, slips.length))
}

function measurePublicFigures(): void {
  const limits = compareLimits()
  const reasons = limits.differing.filter((each) => limits.explained.includes(each)).length
  row(
    'util/platform-spec',
    'limits equal to those of programs and schemas of others',
    `${share(limits.equal, limits.equal + limits.differing.length)}; ${reasons} of the others with a reason`,
  )
  const pages = compareStorePages()
  row(
    'bundle/app-dossier',
    `figures of ${pages.pages} store pages read as they are meant`,
    share(pages.equal, pages.equal + pages.differing.length),
  )
}

/** On a list of OFAC’s form with the names of the cases; `test/bench/sanctions.mjs` takes a real one. */
async function measureSanctions(): Promise<void> {
  const cases: { found: readonly [string, string][]; not_found: readonly string[] } = JSON.parse(
    read('../fixtures/sanctions/cases.json'),
  )
  const main = readFileSync(new URL('../fixtures/sanctions/ofac.xml', import.meta.url))
  const { entries } = await readList('ofac', { main }, async () => {})
  const index = new NameIndex()
  for (const entry of entries) index.add(entry)
  const best = (name: string) => index.search(readName(name), 0.85)[0]?.entry.uid
  const found = cases.found.filter(([name, uid]) => best(name) === uid).length
  const alarms = cases.not_found.filter((name) => best(name) !== undefined).length
  row(
    'util/sanctions',
    'listed names, written in the usual ways, with the right entry first',
    share(found, cases.found.length),
  )
  row('util/sanctions', 'names that are not listed, with a match', share(alarms, cases.not_found.length))
}

function measureGuard(): void {
  const own: Record<'attacks' | 'benign', readonly string[]> = parse(read('../fixtures/service/guard.yaml'))
  const found: Record<'benign' | 'direct' | 'indirect', readonly string[]> = JSON.parse(
    read('../fixtures/guard/public.json'),
  )
  // No rule was written with the unseen ones in view; they were drawn by the seed in their file, or by who published them.
  const [hidden, direct, mails] = ['hidden-tasks', 'direct-attacks', 'mails'].map(
    (name): Record<'development' | 'unseen', readonly string[]> =>
      JSON.parse(read(`../fixtures/guard/${name}.json`)),
  )
  if (hidden === undefined || direct === undefined || mails === undefined) throw new Error('no texts')
  rowOfVerdicts('attacks, by hand', own.attacks, 'any')
  rowOfVerdicts('harmless texts, by hand', own.benign, 'any')
  rowOfVerdicts('harmless texts, public', found.benign, 'any')
  rowOfVerdicts('direct attacks, public', found.direct, 'any')
  rowOfVerdicts('direct attacks, public, unseen', direct.unseen, 'any')
  for (const kind of ['any', 'document'] as const) {
    const as = kind === 'document' ? ', as documents' : ''
    rowOfVerdicts(`tasks hidden in documents, public${as}`, found.indirect, kind)
    rowOfVerdicts(`tasks hidden in documents, public, for development${as}`, hidden.development, kind)
    rowOfVerdicts(`tasks hidden in documents, public, unseen${as}`, hidden.unseen, kind)
    rowOfVerdicts(`mails, public, unseen${as}`, mails.unseen, kind)
  }
}

function rowOfVerdicts(name: string, texts: readonly string[], kind: TextKind): void {
  const verdicts = texts.map((text) => screen({ text, kind }).body['verdict'])
  const counts = ['block', 'review', 'allow'].map((verdict) => {
    const number = verdicts.filter((each) => each === verdict).length
    return `${verdict} ${number}`
  })
  row('util/guard', `${name} (${texts.length})`, counts.join(', '))
}

/** Documents of installed packages, of the half that no rule was written with. */
function measureGuardOnDocuments(): void {
  const documents = packageDocuments('test').slice(0, 1000)
  const texts = documents.map(({ text }) => text)
  for (const kind of ['any', 'document'] as const) {
    const as = kind === 'document' ? ', as documents' : ''
    rowOfVerdicts(`documents of npm packages, seed "${SEED}"${as}`, texts, kind)
  }
  const blocked = documents.filter(
    ({ text }) => screen({ text, kind: 'document' }).body['verdict'] === 'block',
  )
  for (const path of new Set(blocked.map((document) => document.path))) row('util/guard', 'blocked', path)
}

/** With words alone, and with the sentence model: the questions of the set, then the notes beside the memories of the set. */
async function measureMemory(): Promise<void> {
  const model = findSentenceModel()
  for (const embedder of model === undefined ? [hashEmbedder] : [hashEmbedder, sentenceEmbedder(model)])
    await measureEmbedder(embedder)
}

async function measureEmbedder(embedder: Embedder): Promise<void> {
  const signal = new AbortController().signal
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-quality-'))
  const database = openEmbedded(folder)
  await migrate(database)
  const store = new MemoryStore(database, embedder)
  let written = 0
  const write = async (texts: readonly string[]): Promise<void> => {
    for (const text of texts) {
      const payment = String((written += 1))
      const draft = { wallet: 'quality', text, tags: [], key: undefined }
      await store.prepare(payment, draft, new Date(), signal)
      await store.commit(payment)
    }
  }
  const reach = async (name: string, pairs: readonly { query: string; meant: string }[]): Promise<void> => {
    const places = []
    for (const { query, meant } of pairs) {
      const question = { wallet: 'quality', query, most: 50, tags: [], since: undefined }
      const hits = await store.search(question, signal)
      const at = hits.findIndex(({ text }) => text === meant)
      places.push(at < 0 ? Infinity : at + 1)
    }
    const reached = score(places)
    row(
      'memory_search',
      `${embedder.name}: ${name} (${pairs.length})`,
      `R@1 ${reached['R@1']}, R@5 ${reached['R@5']}`,
    )
  }
  const memories = readMemories()
  await write(memories.map(({ text }) => text))
  for (const [name, asked] of [
    ['English', memories.filter(({ language }) => language === 'en')],
    ['German, Spanish, Japanese', memories.filter(({ language }) => language !== 'en')],
  ] as const)
    for (const kind of KINDS) {
      const pairs = asked.map((memory) => ({ query: memory[kind], meant: memory.text }))
      await reach(`${kind} questions, ${name}`, pairs)
    }
  const notes = readNotes()
  await write(notes.map(({ text }) => text))
  const pairs = notes.map(({ paraphrase, text }) => ({ query: paraphrase, meant: text }))
  await reach('paraphrase questions, new English set, among 150 memories', pairs)
  await database.close()
  rmSync(folder, { recursive: true, force: true })
}

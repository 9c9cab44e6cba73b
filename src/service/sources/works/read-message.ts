import type { Dated, Message, Name, Update } from './crossref-message.ts'
import { pageRange } from './page-range.ts'
import { plain } from './plain.ts'
import { fewest, type Contributor, type Kind, type Work } from './work.ts'

/** Crossref's types, and those of CSL where they are called otherwise. */
const KINDS: Readonly<Record<string, Kind>> = {
  'journal-article': 'article-journal',
  'article-journal': 'article-journal',
  'article-magazine': 'article-journal',
  'article-newspaper': 'article-journal',
  'proceedings-article': 'paper-conference',
  'paper-conference': 'paper-conference',
  'book-chapter': 'chapter',
  'book-section': 'chapter',
  'book-part': 'chapter',
  'book-track': 'chapter',
  'reference-entry': 'chapter',
  'entry-encyclopedia': 'chapter',
  'entry-dictionary': 'chapter',
  chapter: 'chapter',
  book: 'book',
  monograph: 'book',
  'edited-book': 'book',
  'reference-book': 'book',
  proceedings: 'book',
  'posted-content': 'article',
  article: 'article',
  report: 'report',
  'report-component': 'report',
  standard: 'report',
  dissertation: 'thesis',
  thesis: 'thesis',
  dataset: 'dataset',
  database: 'dataset',
  software: 'software',
}
const RETRACTS: ReadonlySet<string> = new Set(['retraction', 'withdrawal', 'removal'])
const RETRACTED = /^(?:retracted|withdrawn)(?: article| paper| chapter)?\s*[:.–—-]/i

/** As Crossref says it, which tells of every retraction it knows. */
export function readMessage(message: Message): Work {
  const { type, title, subtitle, author, editor, publisher, issued, page, institution, language } = message
  const kind = KINDS[type ?? ''] ?? 'document'
  const whole = titleOf(first(title), first(subtitle))
  const authors = spelled((author ?? []).flatMap(contributor))
  const number = text(message['article-number'])
  const retraction = retractionOf(message['updated-by'] ?? [], whole)
  const hosts = institution?.flatMap(({ name }) => text(name) ?? []) ?? []
  return {
    doi: message.DOI.toLowerCase(),
    kind,
    type: type ?? 'document',
    title: whole,
    authors: fewest(authors),
    authorCount: authors.length,
    editors: fewest(spelled((editor ?? []).flatMap(contributor))),
    container: containerOf(kind, message['container-title']),
    containerShort: first(message['short-container-title']),
    // A preprint is known by its server, not by who runs that.
    publisher: (kind === 'article' ? hosts[0] : undefined) ?? text(publisher),
    date: dateOf(issued),
    volume: text(message.volume),
    issue: text(message.issue),
    pages: number === null ? pageRange(text(page)) : null,
    articleNumber: number,
    edition: text(message['edition-number']),
    version: null,
    issn: listed(message.ISSN),
    isbn: listed(message.ISBN),
    language: text(language),
    citedBy: message['is-referenced-by-count'] ?? null,
    isRetracted: retraction !== null,
    retraction,
  }
}

/** The year alone when the month is not known, nothing when the year is not. */
export function dateOf(dated: Dated | null | undefined): readonly number[] {
  const [parts = []] = dated?.['date-parts'] ?? []
  const gap = parts.findIndex((part, place) => !isPart(part, place))
  const known = parts.slice(0, gap < 0 ? 3 : gap).flatMap((part) => part ?? [])
  const [year = 0, month = 1, day = 1] = known
  // The thirtieth of February is a fault of the day.
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day ? known : known.slice(0, 2)
}

function isPart(part: number | null, place: number): boolean {
  const most = [9999, 12, 31][place] ?? 0
  return part !== null && part >= 1 && part <= most
}

export function text(value: string | null | undefined): string | null {
  return (value && plain(value)) || null
}

function first(texts: readonly string[] | null | undefined): string | null {
  return text(texts?.find((each) => each.trim() !== ''))
}

/** A chapter is in a book: where Crossref names the series, too, it names that first. */
function containerOf(kind: Kind, titles: readonly string[] | null | undefined): string | null {
  const isPart = kind === 'chapter' || kind === 'paper-conference'
  return first(isPart ? titles?.toReversed() : titles)
}

/** Names in capitals as they are written elsewhere; only where all are, for then the capitals are the printer's. */
function spelled(people: readonly Contributor[]): Contributor[] {
  const families = people.flatMap(({ family }) => family ?? [])
  const areCapitals = families.every((family) => family === family.toUpperCase())
  const isShouted = areCapitals && families.some((family) => /\p{Lu}{3}/u.test(family))
  if (!isShouted) return [...people]
  return people.map((person) => ({ ...person, family: person.family && lowered(person.family) }))
}

function lowered(name: string): string {
  return name.replace(/\p{Lu}[\p{Lu}\p{M}]+/gu, (word) => word.charAt(0) + word.slice(1).toLowerCase())
}

function listed(texts: readonly string[] | null | undefined): readonly string[] {
  return [...new Set((texts ?? []).flatMap((each) => text(each) ?? []))].slice(0, 10)
}

/** Some agencies repeat the subtitle in the title. */
function titleOf(title: string | null, subtitle: string | null): string | null {
  if (title === null || subtitle === null) return title ?? subtitle
  if (title.toLowerCase().includes(subtitle.toLowerCase())) return title
  return /[:?!–—-]$/.test(title) ? `${title} ${subtitle}` : `${title}: ${subtitle}`
}

function contributor({ given, family, suffix, name, ORCID: orcid }: Name): Contributor[] {
  const [first, last, whole] = [text(given), text(family), text(name)]
  // One name alone is not taken apart.
  const only = last === null ? (first ?? whole) : null
  if (only === null && last === null) return []
  const id = /\d{4}-\d{4}-\d{4}-\d{3}[\dX]/.exec(orcid ?? '')?.[0] ?? null
  if (only !== null) return [{ name: only, given: null, family: null, suffix: null, orcid: id }]
  return [{ name: null, given: first, family: last, suffix: text(suffix), orcid: id }]
}

function retractionOf(updates: readonly Update[], title: string | null): Work['retraction'] {
  const update = updates.find(({ type }) => RETRACTS.has(type ?? ''))
  if (update !== undefined) return { notice: update.DOI?.toLowerCase() ?? null, date: dateOf(update.updated) }
  return title !== null && RETRACTED.test(title) ? { notice: null, date: [] } : null
}

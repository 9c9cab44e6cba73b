import type { Contributor, Work } from '../../../sources/works/work.ts'
import { editorsOf } from './credit.ts'

/** A bracket after the stop is part of the sentence: `(Eds.)` has no end. */
const ENDS = /[.!?…][”’"']*$/u

/** Text that ends as a sentence does. */
export function sentence(text: string): string {
  return ENDS.test(text) ? text : `${text}.`
}

/** Between quotation marks with its punctuation inside, as in America; quotes within become single ones. */
export function quoted(title: string, end: '.' | ',' | ''): string {
  const inner = title.replace(/(^|[\s([{–—-])["“„]/gu, '$1‘').replace(/["”“]/gu, '’')
  return `“${inner}${end === '.' && ENDS.test(inner) ? '' : end}”`
}

/** Between single quotation marks with its punctuation behind them, as in Britain; quotes within become double ones. */
export function quotedAsInBritain(title: string, end: '.' | ',' | ''): string {
  return `‘${title}’${end === '.' && ENDS.test(title) ? '' : end}`
}

/** The work with the apostrophes, quotation marks and ranges of print, and without a full stop after the title. */
export function typeset(work: Work): Work {
  const { title, container, containerShort, publisher, volume, issue, authors, editors } = work
  return {
    ...work,
    title: title && curly(title).replace(/(?<=[\p{Ll}\p{Nd}]{3})\.$/u, ''),
    container: container && curly(container),
    containerShort: containerShort && curly(containerShort),
    publisher: publisher && curly(publisher),
    volume: volume && range(volume),
    issue: issue && range(issue),
    authors: authors.map(named),
    editors: editors.map(named),
  }
}

function named(person: Contributor): Contributor {
  const { name, given, family } = person
  return {
    ...person,
    name: name && curly(name),
    given: given && curly(given),
    family: family && curly(family),
  }
}

function curly(text: string): string {
  return text
    .replace(/(?<=[\p{L}\p{N}])'/gu, '’')
    .replace(/(^|[\s([{–—-])'/gu, '$1‘')
    .replaceAll("'", '’')
    .replace(/(^|[\s([{–—-])"/gu, '$1“')
    .replaceAll('"', '”')
}

function range(number: string): string {
  return number.replace(/^(\d+)-(\d+)$/, '$1–$2')
}

/** Parts that are there, with commas between them. */
export function listed(...parts: readonly (string | null | false)[]): string {
  return parts.filter((part) => part !== null && part !== false && part !== '').join(', ')
}

/** Sentences that are there, each with its end. */
export function sentences(...parts: readonly (string | null | false)[]): string {
  return parts
    .flatMap((part) => (part === null || part === false || part === '' ? [] : [sentence(part)]))
    .join(' ')
}

export function titleOf({ title, kind }: Work): string {
  return title ?? (kind === 'dataset' ? 'Untitled data set' : 'Untitled')
}

/** How a work lies in what it was published with: a journal, a volume of several works, or nothing. */
export function placeOf({ kind, container, volume, issue }: Work): 'serial' | 'part' | 'whole' {
  if (container === null) return 'whole'
  if (kind === 'article-journal') return 'serial'
  if (kind === 'chapter' || kind === 'paper-conference') return 'part'
  return kind !== 'book' && (volume !== null || issue !== null) ? 'serial' : 'whole'
}

/** Most styles cite a paper of a conference like an article, unless the proceedings have editors. */
export function isInPeriodical(work: Work): boolean {
  const isLoosePaper = work.kind === 'paper-conference' && editorsOf(work).length === 0
  return placeOf(work) === 'serial' || (isLoosePaper && work.container !== null)
}

/** `2` as `2nd ed.`; null where there is none. */
export function editionOf({ edition }: Work): string | null {
  if (edition === null) return null
  if (!/^\d+$/.test(edition)) return `${edition.replace(/\s*ed(?:ition|n|\.)?\.?$/i, '')} ed.`
  const isTeen = /1\d$/.test(edition)
  return `${edition}${isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][Number(edition.at(-1))] ?? 'th')} ed.`
}

/** Nothing where the publisher is the author, too. */
export function publisherOf({ publisher, authors }: Work): string | null {
  return authors.some(({ name }) => name !== null && name === publisher) ? null : publisher
}

/** What readers would not know from the title alone. */
export function describing({ kind, publisher }: Work): string | null {
  if (kind === 'dataset') return 'Data set'
  if (kind === 'software') return 'Computer software'
  if (kind === 'thesis') return listed('Dissertation', publisher)
  return null
}

export const WHOLE_MONTHS =
  'January February March April May June July August September October November December'.split(' ')

/** `May 28`, `May`, or nothing where the month is not known. */
export function monthAndDay({ date: [, month, day] }: Work): string {
  return [month === undefined ? undefined : WHOLE_MONTHS[month - 1], day].filter(Boolean).join(' ')
}

/** Months as they are shortened in prose, with the four letters that June, July and September keep. */
export const MONTHS = [
  'Jan.',
  'Feb.',
  'Mar.',
  'Apr.',
  'May',
  'June',
  'July',
  'Aug.',
  'Sept.',
  'Oct.',
  'Nov.',
  'Dec.',
]

const WHOLE = /^(\d+)–(\d+)$/
type Shorter = (start: string, end: string) => string

/** The second page without the digits it has in common with the first: `436–44`. */
export function shortPages(pages: string, keep: Shorter = minimal): string {
  const [, start = '', end = ''] = WHOLE.exec(pages) ?? []
  return start === '' || start.length !== end.length ? pages : `${start}–${keep(start, end)}`
}

const minimal: Shorter = (start, end) => end.slice(shared(start, end))

/** At least two digits: `101–08`. */
export const twoDigits: Shorter = (start, end) =>
  end.slice(Math.min(shared(start, end), Math.max(0, end.length - 2)))

/** The Chicago Manual of Style, 9.61: whole below 100 and after full hundreds, the least after `101` to `109`. */
export const chicagoDigits: Shorter = (start, end) => {
  const first = Number(start)
  if (first < 100 || first % 100 === 0) return end
  return first % 100 < 10 ? minimal(start, end) : twoDigits(start, end)
}

function shared(start: string, end: string): number {
  const differs = Array.from(end).findIndex((digit, place) => digit !== start[place])
  return differs < 0 ? end.length - 1 : differs
}

import type { Work } from '../../../sources/works/work.ts'

/** A bracket after the stop is part of the sentence: `(Eds.)` has no end. */
const ENDS = /[.!?…][”’"']*$/u

/** Text that ends as a sentence does. */
export function sentence(text: string): string {
  return ENDS.test(text) ? text : `${text}.`
}

/** Between quotation marks with its punctuation inside, as in America; quotes within become single ones. */
export function quoted(title: string, end: '.' | ','): string {
  const inner = title.replace(/(^|[\s([{–—-])["“„]/gu, '$1‘').replace(/["”“]/gu, '’')
  return `“${inner}${ENDS.test(inner) ? '' : end}”`
}

/** Parts that are there, with commas between them. */
export function listed(...parts: readonly (string | null | false)[]): string {
  return parts.filter((part) => part !== null && part !== false && part !== '').join(', ')
}

/** Sentences that are there, each with its end. */
export function told(...parts: readonly (string | null | false)[]): string {
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

export const minimal: Shorter = (start, end) => end.slice(shared(start, end))

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

import anyAscii from 'any-ascii'
import type { Contributor, Kind, Work } from '../../../sources/works/work.ts'
import { doiAddress } from './doi.ts'
import { placeOf, titleOf } from './fields.ts'

const ENTRIES: Readonly<Record<Kind, string>> = {
  'article-journal': 'article',
  'paper-conference': 'inproceedings',
  chapter: 'incollection',
  book: 'book',
  article: 'misc',
  report: 'techreport',
  thesis: 'phdthesis',
  dataset: 'misc',
  software: 'misc',
  document: 'misc',
}
const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
/** A capital that is not the first sign. */
const INNER = /[\p{L}\p{N}].*\p{Lu}/u
/** Words that make no key: they say nothing. */
const EMPTY: ReadonlySet<string> = new Set('a an and at by for from in of on or the to with'.split(' '))

/** One entry, in UTF-8. What BibTeX reads as a command is escaped, except in the address and the DOI, which it prints as they are. */
export function bibtex(work: Work): string {
  const { container, date, volume, issue, pages, articleNumber, publisher, issn, isbn, edition, version } =
    work
  const place = placeOf(work)
  const fields: readonly (readonly [string, string | null])[] = [
    ['author', peopleOf(work.authors, work.authorCount)],
    ['editor', peopleOf(work.editors, work.editors.length)],
    ['title', braced(protectedTitle(titleOf(work)))],
    [place === 'serial' ? 'journal' : 'booktitle', container && braced(escape(container))],
    ['year', date[0] === undefined ? null : braced(String(date[0]))],
    ['month', MONTHS[(date[1] ?? 0) - 1] ?? null],
    ['volume', volume && braced(escape(volume))],
    ['number', issue && braced(escape(issue))],
    ['pages', pages && braced(escape(pages.replace('–', '--')))],
    ['eid', articleNumber && braced(escape(articleNumber))],
    [fieldOfPublisher(work), publisher && braced(escape(publisher))],
    ['edition', edition && braced(escape(edition))],
    ['version', version && braced(escape(version))],
    ['issn', issn[0] ? braced(escape(issn[0])) : null],
    ['isbn', isbn[0] ? braced(escape(isbn[0])) : null],
    ['doi', braced(verbatim(work.doi))],
    ['url', braced(doiAddress(work.doi))],
  ]
  const known = fields.flatMap(([name, value]) => (value === null ? [] : [`  ${name} = ${value}`]))
  return `@${ENTRIES[work.kind]}{${keyOf(work)},\n${known.join(',\n')}\n}\n`
}

/** `lecun2015deep`: the first name, the year and the first significant word. */
function keyOf(work: Work): string {
  const [first] = work.authors.length > 0 ? work.authors : work.editors
  const words = plainWords(titleOf(work)).filter((word) => !EMPTY.has(word))
  const name = plainWords(first?.family ?? first?.name ?? '')
  const whose = first?.family === null ? (name.find((word) => !EMPTY.has(word)) ?? '') : name.join('')
  const key = [whose, String(work.date[0] ?? 'nd'), words[0] ?? ''].join('')
  return key === '' ? 'work' : key
}

function plainWords(text: string): string[] {
  return anyAscii(text)
    .toLowerCase()
    .replace(/['’]/g, '')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
}

function peopleOf(people: readonly Contributor[], total: number): string | null {
  if (people.length === 0) return null
  const names = people.map(({ name, family, given, suffix }) =>
    family === null
      ? `{${escape(name ?? '')}}`
      : [family, suffix, given].flatMap((part) => (part === null ? [] : [escape(part)])).join(', '),
  )
  return braced([...names, ...(total > people.length ? ['others'] : [])].join(' and '))
}

function fieldOfPublisher({ kind }: Work): string {
  if (kind === 'thesis') return 'school'
  return kind === 'report' ? 'institution' : 'publisher'
}

/**
 * Styles set titles in lower case. Words with capitals inside are kept from that, and so is every capital of a title that
 * has few: there it is a name's.
 */
function protectedTitle(title: string): string {
  const words = title.split(' ')
  const telling = words.slice(1).filter((word) => !INNER.test(word) && !EMPTY.has(word))
  const capitals = telling.filter((word) => /\p{Lu}/u.test(word)).length
  const isHeadline = telling.length > 1 && capitals > telling.length / 2
  return words
    .map((word, place) => {
      const begins = /^$|[:?!]$/.test(words[place - 1] ?? '')
      const isName = /\p{Lu}/u.test(word) && !isHeadline && !begins
      return INNER.test(word) || isName ? braced(escape(word)) : escape(word)
    })
    .join(' ')
}

const COMMANDS: Readonly<Record<string, string>> = {
  '\\': '\\textbackslash{}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
}

function escape(text: string): string {
  return text.replace(/[\\~^]|[&%$#_{}]/g, (sign) => COMMANDS[sign] ?? `\\${sign}`)
}

/** Braces that are not in pairs would end the field. */
function verbatim(doi: string): string {
  return doi.replace(/[{}\\]/g, encodeURIComponent)
}

function braced(text: string): string {
  return `{${text}}`
}

import type { Contributor, Kind, Work } from '../../../sources/works/work.ts'
import { doiAddress } from './doi.ts'
import { placeOf, titleOf } from './fields.ts'

const TYPES: Readonly<Record<Kind, string>> = {
  'article-journal': 'JOUR',
  'paper-conference': 'CPAPER',
  chapter: 'CHAP',
  book: 'BOOK',
  article: 'UNPB',
  report: 'RPRT',
  thesis: 'THES',
  dataset: 'DATA',
  software: 'COMP',
  document: 'GEN',
}

/** One record of the RIS format: a tag, two spaces, a hyphen, a space; lines end with CR and LF. */
export function ris(work: Work): string {
  const { authors, editors, container, containerShort, date, volume, issue, pages, articleNumber } = work
  const [year, month] = date
  const [start, end] = pages?.split('–') ?? [articleNumber ?? undefined]
  const given: readonly (readonly [string, string | null | undefined])[] = [
    ['TY', TYPES[work.kind]],
    ...authors.map((person) => ['AU', nameOf(person)] as const),
    ...editors.map((person) => [authors.length > 0 ? 'A2' : 'AU', nameOf(person)] as const),
    ['TI', titleOf(work)],
    [placeOf(work) === 'serial' ? 'JO' : 'T2', container],
    ['J2', containerShort],
    ['PY', year?.toString()],
    ['DA', month === undefined ? null : date.map(two).join('/')],
    ['VL', volume],
    ['IS', issue],
    ['SP', start],
    ['EP', end],
    ['PB', work.publisher],
    ['ET', work.edition ?? work.version],
    ['LA', work.language],
    ['SN', work.issn[0] ?? work.isbn[0]],
    ['DO', work.doi],
    ['UR', doiAddress(work.doi)],
  ]
  const lines = given.flatMap(([tag, value]) => (value ? [`${tag}  - ${value}`] : []))
  return [...lines, 'ER  - ', ''].join('\r\n')
}

function nameOf({ name, family, given, suffix }: Contributor): string {
  if (family === null) return name ?? ''
  return [family, given, suffix].filter((part) => part !== null).join(', ')
}

function two(part: number): string {
  return String(part).padStart(2, '0')
}

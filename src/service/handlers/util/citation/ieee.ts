import type { Contributor, Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { abridged, givenFirst, inSeries, spaced } from './person-names.ts'
import { editionOf, listed, placeOf, publisherOf, quoted, sentence, titleOf, sentences } from './fields.ts'

const MOST = 6
const MONTHS = ['Jan.', 'Feb.', 'Mar.', 'Apr.', 'May', 'Jun.', 'Jul.', 'Aug.', 'Sep.', 'Oct.', 'Nov.', 'Dec.']
/** Known by the day on which they were put up. */
const OF_ONE_DAY: ReadonlySet<string> = new Set(['article', 'dataset', 'document'])
/** Known by the year. */
const OF_ONE_YEAR: ReadonlySet<string> = new Set(['book', 'chapter', 'thesis'])

/** IEEE Reference Guide of November 2023, without italics. */
export function ieee(work: Work): string {
  const { container, containerShort, volume, issue, articleNumber } = work
  const by = credit(work)
  const start = by === null ? '' : `${by}, `
  const title = titleOf(work)
  const end = `doi: ${work.doi}.`
  switch (placeOf(work)) {
    case 'serial': {
      const span = articleNumber === null ? pagesOf(work) : `Art. no. ${articleNumber}`
      const numbers = listed(volume && `vol. ${volume}`, issue && `no. ${issue}`, span)
      return `${start}${quoted(title, ',')} ${listed(containerShort ?? container, numbers, dateOf(work), end)}`
    }
    case 'part': {
      const editors = editorsOf(work)
      const edited =
        editors.length > 0 && `${series(editors, editors.length)}, ${editors.length === 1 ? 'Ed.' : 'Eds.'}`
      const number = work.kind === 'chapter' && volume && `vol. ${volume}`
      const book = listed(
        container,
        number,
        editionOf(work),
        edited,
        publisherOf(work),
        dateOf(work),
        pagesOf(work),
      )
      return `${start}${quoted(title, ',')} in ${sentence(book)} ${end}`
    }
    case 'whole':
      if (work.kind === 'article-journal') return `${start}${quoted(title, ',')} ${listed(dateOf(work), end)}`
      return `${start}${whole(work, title)} ${end}`
  }
}

function whole(work: Work, title: string): string {
  const publisher = publisherOf(work)
  const date = dateOf(work)
  switch (work.kind) {
    case 'book':
      return sentences(listed(title, editionOf(work)), listed(publisher, date))
    case 'software':
      return sentences(title, `(${date})`, publisher)
    case 'article':
      return `${quoted(title, ',')} ${sentence(listed(date, publisher))}`
    case 'report':
      return `${quoted(title, ',')} ${sentence(listed(publisher, date))}`
    case 'thesis':
      return `${quoted(title, ',')} ${sentence(listed('Dissertation', publisher, date))}`
    default:
      return sentences(quoted(title, '.'), listed(publisher, date))
  }
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  if (people.length === 0) return null
  const list = series(people, total)
  return role === 'author' ? list : `${list}, ${total === 1 ? 'Ed.' : 'Eds.'}`
}

function series(people: readonly Contributor[], total: number): string {
  const names = people.map((person) => givenFirst(person, spaced))
  return abridged(names, total, MOST, 1) ?? inSeries(names, ' and ', ', and ')
}

function pagesOf({ pages }: Work): string | null {
  return pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${pages}`
}

function dateOf({ kind, date: [year, month, day] }: Work): string {
  if (year === undefined) return 'n.d.'
  if (month === undefined || OF_ONE_YEAR.has(kind)) return String(year)
  const named = MONTHS[month - 1] ?? ''
  if (day === undefined || !OF_ONE_DAY.has(kind)) return `${named} ${year}`
  return `${named} ${String(day).padStart(2, '0')}, ${year}`
}

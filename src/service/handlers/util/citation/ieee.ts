import type { Contributor, Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { abridged, givenFirst, inSeries, spaced } from './names.ts'
import { listed, placeOf, publisherOf, quoted, titleOf } from './wording.ts'

const MOST = 6
const MONTHS = ['Jan.', 'Feb.', 'Mar.', 'Apr.', 'May', 'Jun.', 'Jul.', 'Aug.', 'Sep.', 'Oct.', 'Nov.', 'Dec.']

/** IEEE Reference Guide, without italics. */
export function ieee(work: Work): string {
  const { container, volume, issue, articleNumber } = work
  const by = credit(work)
  const start = by === null ? '' : `${by}, `
  const title = titleOf(work)
  const end = `doi: ${work.doi}.`
  switch (placeOf(work)) {
    case 'serial': {
      const span = articleNumber === null ? pagesOf(work) : `Art. no. ${articleNumber}`
      const numbers = listed(volume && `vol. ${volume}`, issue && `no. ${issue}`, span)
      return `${start}${quoted(title, ',')} ${listed(container, numbers, dateOf(work), end)}`
    }
    case 'part': {
      const editors = editorsOf(work)
      const edited =
        editors.length > 0 && `${series(editors, editors.length)}, ${editors.length === 1 ? 'Ed.' : 'Eds.'}`
      const book = listed(container, edited, publisherOf(work), dateOf(work), pagesOf(work), end)
      return `${start}${quoted(title, ',')} in ${book}`
    }
    case 'whole': {
      const rest = listed(publisherOf(work), dateOf(work), end)
      const isPlain = work.kind === 'book' || work.kind === 'report'
      return `${start}${isPlain ? `${title}.` : quoted(title, ',')} ${listed(work.kind === 'thesis' && 'Dissertation', rest)}`
    }
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

function dateOf({ kind, date: [year, month] }: Work): string {
  if (year === undefined) return 'n.d.'
  const hasMonth = month !== undefined && kind !== 'book' && kind !== 'report' && kind !== 'chapter'
  return hasMonth ? `${MONTHS[month - 1] ?? ''} ${year}` : String(year)
}

import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { containerHeadline, headline } from './headline.ts'
import { familyFirst, givenFirst, inFull, inSeries, isTurned } from './person-names.ts'
import {
  editionOf,
  isInPeriodical,
  listed,
  MONTHS,
  placeOf,
  publisherOf,
  quoted,
  sentence,
  shortPages,
  sentences,
  twoDigits,
} from './fields.ts'

const STANDALONE: ReadonlySet<string> = new Set(['book', 'report', 'software', 'thesis', 'article-journal'])
/** Known by the day on which they came out; of articles the month is enough. */
const OF_ONE_DAY: ReadonlySet<string> = new Set(['article', 'dataset', 'document', 'report', 'software'])

/** MLA Handbook, 9th edition, without italics. Numbers of articles are left out, as MLA advises. */
export function mla(work: Work): string {
  const title = headline(work)
  const isPlain = placeOf(work) === 'whole' && STANDALONE.has(work.kind)
  const shown = isPlain ? sentence(title) : quoted(title, '.')
  const address = doiAddress(work.doi)
  if (work.kind === 'thesis')
    return sentences(
      credit(work),
      shown,
      listed(dateOf(work), address),
      listed(publisherOf(work), 'Dissertation'),
    )
  return sentences(credit(work), shown, listed(placeIn(work), address))
}

function placeIn(work: Work): string {
  const { volume, issue, pages } = work
  const container = containerHeadline(work)
  const span = pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${shortPages(pages, twoDigits)}`
  const number = volume && `vol. ${volume}`
  const part = issue && `${issue.includes('–') ? 'nos.' : 'no.'} ${issue}`
  const date = dateOf(work)
  if (isInPeriodical(work)) return listed(container, number, part, date, span)
  if (placeOf(work) === 'whole') return listed(editionOf(work), publisherOf(work), date)
  return listed(container, editedBy(work), editionOf(work), number, publisherOf(work), date, span)
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  const [first, second] = people
  if (first === undefined) return null
  const start = familyFirst(first, inFull)
  const names =
    total > 2
      ? `${start}, et al.`
      : second === undefined
        ? start
        : `${start}${isTurned(first) ? ',' : ''} and ${givenFirst(second, inFull)}`
  return role === 'author' ? names : `${names}, ${total === 1 ? 'editor' : 'editors'}`
}

function editedBy(work: Work): string | null {
  const [first, ...others] = editorsOf(work).map((person) => givenFirst(person, inFull))
  if (first === undefined) return null
  return `edited by ${others.length > 1 ? `${first} et al.` : inSeries([first, ...others], ' and ', ' and ')}`
}

function dateOf({ kind, date: [year, month, day] }: Work): string | null {
  if (year === undefined) return null
  const named = month === undefined ? undefined : MONTHS[month - 1]
  if (OF_ONE_DAY.has(kind)) return [named && day, named, year].filter(Boolean).join(' ')
  return kind === 'article-journal' ? [named, year].filter(Boolean).join(' ') : String(year)
}

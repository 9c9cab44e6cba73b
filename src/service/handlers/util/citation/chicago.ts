import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { containerHeadline, headline } from './headline.ts'
import { coreFirst, givenFirst, inFull, inSeries, isTurned } from './person-names.ts'
import {
  chicagoDigits,
  editionOf,
  isInPeriodical,
  listed,
  monthAndDay,
  placeOf,
  publisherOf,
  quoted,
  sentence,
  shortPages,
  sentences,
  WHOLE_MONTHS,
} from './fields.ts'

const MOST = 6
const SHOWN = 3
const STANDALONE: ReadonlySet<string> = new Set(['book', 'report', 'software', 'article-journal'])

/** The Chicago Manual of Style, 18th edition, author and date, without italics. */
export function chicago(work: Work): string {
  const title = headline(work)
  const year = work.date[0]?.toString() ?? 'n.d.'
  const isPlain = placeOf(work) === 'whole' && STANDALONE.has(work.kind)
  const shown = isPlain ? sentence(title) : quoted(title, '.')
  const by = credit(work)
  const head = by === null ? sentences(shown, year) : sentences(by, year, shown)
  return `${sentences(head, placeIn(work), doiAddress(work.doi))}`
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  const [first, ...others] = people
  if (first === undefined) return null
  const names = [coreFirst(first, inFull), ...others.map((person) => givenFirst(person, inFull))]
  const list =
    total > MOST
      ? `${names.slice(0, SHOWN).join(', ')}, et al.`
      : inSeries(names, isTurned(first) ? ', and ' : ' and ', ', and ')
  return role === 'author' ? list : `${list}, ${total === 1 ? 'ed.' : 'eds.'}`
}

function placeIn(work: Work): string | null {
  const container = containerHeadline(work)
  if (isInPeriodical(work)) return inPeriodical(work, container ?? '')
  switch (placeOf(work)) {
    case 'serial':
    case 'part': {
      const editors = editorsOf(work).map((person) => givenFirst(person, inFull))
      const by = editors.length > 0 && `edited by ${inSeries(editors, ' and ', ', and ')}`
      const volume = work.volume && `vol. ${work.volume}`
      return sentences(`In ${listed(container, editionOf(work), by, volume)}`, publisherOf(work))
    }
    case 'whole':
      return whole(work)
  }
}

function inPeriodical(work: Work, container: string): string {
  const { volume, issue, pages, articleNumber, date } = work
  const span = articleNumber ?? (pages && shortPages(pages, chicagoDigits))
  if (volume === null) return listed(container, issue && `no. ${issue}`, monthAndDay(work), span)
  const month = WHOLE_MONTHS[(date[1] ?? 0) - 1] ?? null
  const aside = issue ?? month
  return `${container} ${volume}${aside === null ? '' : ` (${aside})`}${span === null ? '' : `: ${span}`}`
}

function whole(work: Work): string {
  const { kind } = work
  const publisher = publisherOf(work)
  const day = monthAndDay(work)
  switch (kind) {
    case 'thesis':
      return listed('Dissertation', publisher)
    case 'article':
      return listed('Preprint', publisher, day)
    case 'software':
      return day === ''
        ? (publisher ?? '')
        : listed(publisher ?? `Released ${day}`, publisher && `released ${day}`)
    case 'dataset':
    case 'document':
      return listed(publisher, day)
    default:
      return sentences(editionOf(work), publisher)
  }
}

import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { headline } from './headline.ts'
import { familyFirst, givenFirst, inFull, inSeries } from './names.ts'
import { chicagoDigits, listed, placeOf, publisherOf, quoted, sentence, shortPages, told } from './wording.ts'

const MOST = 10
const SHOWN = 7

/** The Chicago Manual of Style, 17th edition, author and date, without italics. */
export function chicago(work: Work): string {
  const title = headline(work)
  const year = work.date[0]?.toString() ?? 'n.d.'
  const isPlain = placeOf(work) === 'whole' && ['book', 'report', 'software', 'dataset'].includes(work.kind)
  const shown = isPlain ? sentence(title) : quoted(title, '.')
  const by = credit(work)
  const head = by === null ? told(shown, year) : told(by, year, shown)
  return `${told(head, placeIn(work), doiAddress(work.doi))}`
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  const [first, ...others] = people
  if (first === undefined) return null
  const names = [familyFirst(first, inFull), ...others.map((person) => givenFirst(person, inFull))]
  const list =
    total > MOST ? `${names.slice(0, SHOWN).join(', ')}, et al.` : inSeries(names, ', and ', ', and ')
  return role === 'author' ? list : `${list}, ${total === 1 ? 'ed.' : 'eds.'}`
}

function placeIn(work: Work): string | null {
  const { container, volume, issue, pages, articleNumber, kind } = work
  switch (placeOf(work)) {
    case 'serial': {
      const number = issue === null ? '' : volume === null ? `, no. ${issue}` : ` (${issue})`
      const span = articleNumber ?? (pages && shortPages(pages, chicagoDigits))
      return `${container ?? ''}${volume === null ? '' : ` ${volume}`}${number}${span === null ? '' : `: ${span}`}`
    }
    case 'part': {
      const editors = editorsOf(work).map((person) => givenFirst(person, inFull))
      const by = editors.length > 0 && `edited by ${inSeries(editors, ' and ', ', and ')}`
      return told(`In ${listed(container, by, pages && shortPages(pages, chicagoDigits))}`, publisherOf(work))
    }
    case 'whole':
      return listed(kind === 'thesis' && 'Dissertation', publisherOf(work))
  }
}

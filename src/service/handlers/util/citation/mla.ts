import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { headline } from './headline.ts'
import { familyFirst, givenFirst, inFull, inSeries } from './names.ts'
import {
  listed,
  MONTHS,
  placeOf,
  publisherOf,
  quoted,
  sentence,
  shortPages,
  told,
  twoDigits,
} from './wording.ts'

/** MLA Handbook, 9th edition, without italics. Numbers of articles are left out, as MLA advises. */
export function mla(work: Work): string {
  const { container, volume, issue, pages } = work
  const title = headline(work)
  const place = placeOf(work)
  const span = pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${shortPages(pages, twoDigits)}`
  const address = doiAddress(work.doi)
  const year = work.date[0]?.toString() ?? null
  const stands =
    place === 'serial'
      ? listed(container, volume && `vol. ${volume}`, issue && `no. ${issue}`, dateOf(work), span, address)
      : place === 'part'
        ? listed(container, editedBy(work), publisherOf(work), year, span, address)
        : listed(publisherOf(work), year, address)
  const isPlain = place === 'whole' && ['book', 'report', 'software', 'dataset'].includes(work.kind)
  return told(credit(work), isPlain ? sentence(title) : quoted(title, '.'), stands)
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
        : `${start}, and ${givenFirst(second, inFull)}`
  return role === 'author' ? names : `${names}, ${total === 1 ? 'editor' : 'editors'}`
}

function editedBy(work: Work): string | null {
  const [first, ...others] = editorsOf(work).map((person) => givenFirst(person, inFull))
  if (first === undefined) return null
  return `edited by ${others.length > 1 ? `${first} et al.` : inSeries([first, ...others], ' and ', ' and ')}`
}

function dateOf({ date: [year, month] }: Work): string | null {
  if (year === undefined) return null
  return [month === undefined ? undefined : MONTHS[month - 1], year].filter(Boolean).join(' ')
}

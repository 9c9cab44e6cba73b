import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { abridged, bare, familyFirst } from './person-names.ts'
import { editionOf, placeOf, publisherOf, shortPages, titleOf, sentences } from './fields.ts'

const MOST = 6
const ONLINE = ' [Internet]'
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Citing Medicine of the National Library of Medicine, 2nd edition: what is no article is cited as found online. */
export function vancouver(work: Work): string {
  const place = placeOf(work)
  const isArticle = place === 'serial' || work.kind === 'article-journal'
  const title =
    titleOf(work) + (work.kind === 'thesis' ? ' [Dissertation]' : '') + (place === 'whole' ? ONLINE : '')
  const address = isArticle ? '' : ` Available from: ${doiAddress(work.doi)}`
  return `${sentences(credit(work), title, placeIn(work))}${address} doi:${work.doi}`
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  if (people.length === 0) return null
  const list = listOf(people, total)
  return role === 'author' ? list : `${list}, ${total === 1 ? 'editor' : 'editors'}`
}

function listOf(people: Work['authors'], total: number): string {
  const names = people.map((person) => familyFirst(person, bare, '').replace(/\.(?= |$)/g, ''))
  return abridged(names, total, MOST, MOST) ?? names.join(', ')
}

function placeIn(work: Work): string {
  const { container, containerShort, volume, issue, pages, articleNumber, date } = work
  const year = date[0]?.toString() ?? '[date unknown]'
  const span = pages && shortPages(pages)
  switch (placeOf(work)) {
    case 'serial': {
      const journal = (containerShort ?? container ?? '').replaceAll('.', '')
      const number = (volume ?? '') + (issue === null ? '' : `(${issue})`)
      const where = articleNumber ?? span
      return sentences(
        journal,
        dayOf(work) + (number === '' ? '' : `;${number}`) + (where === null ? '' : `:${where}`),
      )
    }
    case 'part': {
      const editors = editorsOf(work)
      const by =
        editors.length > 0 &&
        `${listOf(editors, editors.length)}, ${editors.length === 1 ? 'editor' : 'editors'}`
      const from = [publisherOf(work), year].filter(Boolean).join('; ')
      const book = `${container ?? ''}${ONLINE}`
      return `In: ${sentences(by, book, editionOf(work), from, span && `p. ${span}`)}`
    }
    case 'whole':
      return sentences(
        editionOf(work),
        [publisherOf(work), work.kind === 'report' ? monthOf(work) : year].filter(Boolean).join('; '),
      )
  }
}

function monthOf(work: Work): string {
  return dayOf({ ...work, date: work.date.slice(0, 2) })
}

function dayOf({ date: [year, month, day] }: Work): string {
  if (year === undefined) return '[date unknown]'
  return [year, month === undefined ? undefined : MONTHS[month - 1], day].filter(Boolean).join(' ')
}

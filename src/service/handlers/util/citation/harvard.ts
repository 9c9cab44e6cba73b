import type { Contributor, Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { close, familyFirst, givenFirst, inSeries } from './person-names.ts'
import { editionOf, listed, placeOf, publisherOf, quotedAsInBritain, titleOf, sentences } from './fields.ts'

const MOST = 3
const STANDALONE: ReadonlySet<string> = new Set(['book', 'report', 'thesis'])

/** Cite Them Right, 12th edition, as reference managers print it in British English, without italics. */
export function harvard(work: Work): string {
  const title = titleOf(work)
  const year = `(${work.date[0] ?? 'no date'})`
  const by = credit(work)
  const isWhole = placeOf(work) === 'whole'
  const isPlain = isWhole && STANDALONE.has(work.kind)
  const place = placeIn(work)
  const online = `Available at: ${doiAddress(work.doi)}`
  if (by === null) {
    const head = `${isPlain ? title : quotedAsInBritain(title, '')} ${year}`
    return isWhole ? sentences(head, place, online) : sentences(`${head} ${place ?? ''}`, online)
  }
  if (isPlain) return sentences(`${by} ${year} ${title}`, place, online)
  const head = `${by} ${year} ${quotedAsInBritain(title, isWhole ? '.' : ',')}`
  return isWhole ? sentences(head, place, online) : sentences(`${head} ${place ?? ''}`, online)
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  if (people.length === 0) return null
  const list = listOf(people, total, (person) => familyFirst(person, close))
  return role === 'author' ? list : `${list} (${total === 1 ? 'ed.' : 'eds'})`
}

function listOf(
  people: readonly Contributor[],
  total: number,
  show: (person: Contributor) => string,
): string {
  const names = people.map(show)
  return total > MOST ? `${names[0] ?? ''} et al.` : inSeries(names, ' and ', ' and ')
}

function placeIn(work: Work): string | null {
  const { container, volume, issue, pages, articleNumber } = work
  const span = pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${pages}`
  switch (placeOf(work)) {
    case 'serial': {
      const number = (volume ?? '') + (issue === null ? '' : `(${issue})`)
      return listed(container, number, articleNumber === null ? span : `p. ${articleNumber}`)
    }
    case 'part': {
      const editors = editorsOf(work)
      const list = listOf(editors, editors.length, (person) => givenFirst(person, close))
      const by = editors.length === 0 ? '' : `in ${list} (${editors.length === 1 ? 'ed.' : 'eds'}) `
      const edition = britishEdition(work)
      const publisher = publisherOf(work)
      const book = `${by}${container ?? ''}`
      if (edition === null && publisher === null) return listed(book, span)
      return sentences(book, edition, listed(publisher, span))
    }
    case 'whole':
      return sentences(work.kind === 'thesis' && 'Dissertation', britishEdition(work), publisherOf(work))
  }
}

function britishEdition(work: Work): string | null {
  return editionOf(work)?.replace(/\bed\.?$/, 'edn') ?? null
}

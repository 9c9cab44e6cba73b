import type { Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { close, familyFirst, givenFirst, inSeries } from './names.ts'
import { listed, placeOf, publisherOf, quoted, sentence, titleOf, told } from './wording.ts'

const MOST = 3

/** Cite Them Right, as reference managers print it in American English, without italics. */
export function harvard(work: Work): string {
  const title = titleOf(work)
  const year = `(${work.date[0] ?? 'no date'})`
  const by = credit(work)
  const place = placeOf(work)
  const isPlain = place === 'whole' && work.kind !== 'article'
  const shown = isPlain ? sentence(title) : `${quoted(title, ',')} ${placeIn(work)}`
  const head = by === null ? `${isPlain ? title : quoted(title, ',')} ${year}` : `${by} ${year}`
  const rest = by === null ? (isPlain ? null : placeIn(work)) : shown
  const publisher = place === 'serial' || !isPlain ? null : publisherOf(work)
  return told([head, rest].filter(Boolean).join(' '), publisher, `Available at: ${doiAddress(work.doi)}`)
}

function credit(work: Work): string | null {
  const { people, total, role } = creditOf(work)
  if (people.length === 0) return null
  const names = people.map((person) => familyFirst(person, close))
  const list = total > MOST ? `${names[0] ?? ''} et al.` : inSeries(names, ' and ', ' and ')
  return role === 'author' ? list : `${list} (${total === 1 ? 'ed.' : 'eds'})`
}

function placeIn(work: Work): string {
  const { container, volume, issue, pages, articleNumber } = work
  const span = pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${pages}`
  switch (placeOf(work)) {
    case 'serial': {
      const number = (volume ?? '') + (issue === null ? '' : `(${issue})`)
      return listed(container, number, articleNumber === null ? span : `p. ${articleNumber}`)
    }
    case 'part': {
      const editors = editorsOf(work).map((person) => givenFirst(person, close))
      const by =
        editors.length === 0
          ? ''
          : `${inSeries(editors, ' and ', ' and ')} (${editors.length === 1 ? 'ed.' : 'eds'}) `
      return told(`in ${by}${container ?? ''}`, listed(publisherOf(work), span))
    }
    case 'whole':
      return publisherOf(work) ?? ''
  }
}

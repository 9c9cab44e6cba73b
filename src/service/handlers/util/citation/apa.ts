import type { Contributor, Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { familyFirst, givenFirst, inSeries, spaced } from './names.ts'
import { describing, listed, placeOf, publisherOf, sentence, titleOf, told } from './wording.ts'

const MOST = 20
const BEFORE_GAP = 19

/** Publication Manual of the American Psychological Association, 7th edition, without italics. */
export function apa(work: Work): string {
  const { people, total, role } = creditOf(work)
  const names = series(people, total)
  const credit = role === 'editor' ? `${names} (${people.length === 1 ? 'Ed.' : 'Eds.'})` : names
  const date = `(${work.date[0] ?? 'n.d.'})`
  const title = titleWith(work)
  const head =
    names === '' ? `${sentence(title)} ${date}.` : `${sentence(credit)} ${date}. ${sentence(title)}`
  return `${told(head, placeIn(work))} ${doiAddress(work.doi)}`
}

function series(people: readonly Contributor[], total: number): string {
  const names = people.map((person) => familyFirst(person, spaced))
  if (total > MOST) return `${names.slice(0, BEFORE_GAP).join(', ')}, … ${names.at(-1) ?? ''}`
  return inSeries(names, ', & ', ', & ')
}

function titleWith(work: Work): string {
  const { edition, version } = work
  const aside = listed(
    edition && `${ordinal(edition)} ed.`,
    version && `Version ${version.replace(/^v(?:ersion)?\.? ?/i, '')}`,
  )
  const kind = describing(work)
  const place = placeOf(work)
  return (
    titleOf(work) +
    (aside === '' || place !== 'whole' ? '' : ` (${aside})`) +
    (kind === null ? '' : ` [${kind}]`)
  )
}

function placeIn(work: Work): string | null {
  const { container, volume, issue, pages, articleNumber } = work
  switch (placeOf(work)) {
    case 'serial': {
      const number = (volume ?? '') + (issue === null ? '' : `(${issue})`)
      const article = articleNumber ?? (pages?.startsWith('e') ? pages : null)
      return listed(container, number, article === null ? pages : `Article ${article}`)
    }
    case 'part': {
      const editors = editorsOf(work).map((person) => givenFirst(person, spaced))
      const by =
        editors.length === 0
          ? ''
          : `${inSeries(editors, ' & ', ', & ')} (${editors.length === 1 ? 'Ed.' : 'Eds.'}), `
      const span = pages === null ? '' : ` (${pages.includes('–') ? 'pp.' : 'p.'} ${pages})`
      return told(`In ${by}${container ?? ''}${span}`, publisherOf(work))
    }
    case 'whole':
      return work.kind === 'thesis' ? null : publisherOf(work)
  }
}

/** `2` as `2nd`; what is no number stays as it is. */
function ordinal(edition: string): string {
  if (!/^\d+$/.test(edition)) return edition.replace(/\s*ed(?:ition|\.)?$/i, '')
  const isTeen = /1\d$/.test(edition)
  return edition + (isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][Number(edition.at(-1))] ?? 'th'))
}

import type { Contributor, Work } from '../../../sources/works/work.ts'
import { creditOf, editorsOf } from './credit.ts'
import { doiAddress } from './doi.ts'
import { familyFirst, givenFirst, inSeries, isTurned, spaced } from './person-names.ts'
import {
  describing,
  editionOf,
  isInPeriodical,
  listed,
  monthAndDay,
  placeOf,
  publisherOf,
  sentence,
  titleOf,
  sentences,
} from './fields.ts'

const MOST = 20
const BEFORE_GAP = 19

/** Publication Manual of the American Psychological Association, 7th edition, without italics. */
export function apa(work: Work): string {
  const { people, total, role } = creditOf(work)
  const names = series(people, total)
  const credit = role === 'editor' ? `${names} (${people.length === 1 ? 'Ed.' : 'Eds.'})` : names
  const date = `(${dateOf(work)})`
  const title = titleWith(work)
  const head =
    names === '' ? `${sentence(title)} ${date}.` : `${sentence(credit)} ${date}. ${sentence(title)}`
  return `${sentences(head, placeIn(work))} ${doiAddress(work.doi)}`
}

/** The day only for works published on a day: a paper without pages, a document. */
function dateOf(work: Work): string {
  const [year] = work.date
  if (year === undefined) return 'n.d.'
  const isOfOneDay =
    work.kind === 'document' ||
    (work.kind === 'paper-conference' && isInPeriodical(work) && work.pages === null)
  return listed(String(year), isOfOneDay && monthAndDay(work))
}

function series(people: readonly Contributor[], total: number): string {
  const names = people.map((person) => familyFirst(person, spaced))
  if (total > MOST) return `${names.slice(0, BEFORE_GAP).join(', ')}, … ${names.at(-1) ?? ''}`
  return inSeries(names, isTurned(people[0]) ? ', & ' : ' & ', ', & ')
}

function titleWith(work: Work): string {
  const { version } = work
  const aside = listed(editionOf(work), version && `Version ${version.replace(/^v(?:ersion)?\.? ?/i, '')}`)
  const kind = describing(work)
  return (
    // The first word after a colon has a capital.
    titleOf(work).replace(/(?<=\p{L}{2}: )\p{Ll}/gu, (letter) => letter.toUpperCase()) +
    (aside === '' || placeOf(work) !== 'whole' ? '' : ` (${aside})`) +
    (kind === null ? '' : ` [${kind}]`)
  )
}

function placeIn(work: Work): string | null {
  const { container, volume, issue, pages, articleNumber } = work
  if (isInPeriodical(work)) {
    const number = (volume ?? '') + (issue === null ? '' : `(${issue})`)
    const article = articleNumber ?? (pages?.startsWith('e') ? pages : null)
    return listed(container, number, article === null ? pages : `Article ${article}`)
  }
  if (placeOf(work) === 'whole') return work.kind === 'thesis' ? null : publisherOf(work)
  const editors = editorsOf(work).map((person) => givenFirst(person, spaced))
  const by =
    editors.length === 0
      ? ''
      : `${inSeries(editors, ' & ', ', & ')} (${editors.length === 1 ? 'Ed.' : 'Eds.'}), `
  const span = pages && `${pages.includes('–') ? 'pp.' : 'p.'} ${pages}`
  const part = listed(editionOf(work), volume && `Vol. ${volume}`, span)
  return sentences(`In ${by}${container ?? ''}${part === '' ? '' : ` (${part})`}`, publisherOf(work))
}

import { placesOf } from '../../util/repurpose/sentences.ts'
import { withoutLinks } from '../links.ts'
import type { Page } from './pages.ts'

/** A statement and the number of the page it rests on, from 1. */
export interface BriefClaim {
  readonly text: string
  readonly source: number
}

export interface Brief {
  readonly brief: string
  readonly claims: readonly BriefClaim[]
}

const MOST_CLAIMS = 20
const LONGEST_CLAIM = 1000
const LONGEST_BRIEF = 8000
/** `. [1]` and `.[1][2]`: a citation that is behind the end of its sentence. */
const BEHIND = /([.!?。！？]["”’]?)\s{0,3}((?:\[\d{1,3}\]\s{0,3})+)/g

/**
 * What of a brief can be relied on to lead back to a page that was read: claims that name one, and sentences whose
 * citations all do. The rest is dropped, as are addresses other than those of the pages.
 */
export function citedOnly({ brief, claims }: Brief, pages: readonly Page[]): Brief {
  const kept = claims
    .map(({ text, source }) => ({ text: tidy(text, pages).slice(0, LONGEST_CLAIM), source }))
    .filter(
      ({ text, source }) =>
        text !== '' && isRead(source, pages) && numbersIn(text).every((n) => isRead(n, pages)),
    )
    .slice(0, MOST_CLAIMS)
  const text = tidy(
    brief
      .slice(0, LONGEST_BRIEF)
      .replaceAll(BEHIND, (_, end: string, cited: string) => ` ${cited.trim()}${end} `),
    pages,
  )
  const sentences = placesOf(text, 'und')
    .map(({ start, end }) => text.slice(start, end))
    .filter((sentence) => {
      const numbers = numbersIn(sentence)
      return numbers.length > 0 && numbers.every((n) => isRead(n, pages))
    })
  return { brief: sentences.length > 0 ? sentences.join(' ') : joined(kept), claims: kept }
}

/** Claims as a text with citations. */
export function joined(claims: readonly BriefClaim[]): string {
  return claims.map(({ text, source }) => `${text} [${source}]`).join('\n')
}

/** Text of strangers as it may be shown: without addresses other than those of the pages that were read. */
export function tidy(text: string, pages: readonly Page[]): string {
  return withoutLinks(text, (address) => pages.some(({ url }) => url === address)).trim()
}

function isRead(source: number, { length }: readonly Page[]): boolean {
  return Number.isInteger(source) && source >= 1 && source <= length
}

function numbersIn(text: string): number[] {
  return Array.from(text.matchAll(/\[(\d{1,9})\]/g), ([, digits]) => Number(digits))
}

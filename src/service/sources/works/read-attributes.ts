import type { Attributes, Container, Person } from './datacite-attributes.ts'
import { pageRange } from './page-range.ts'
import { dateOf, text } from './read-message.ts'
import { fewest, type Contributor, type Kind, type Work } from './work.ts'

/** DataCite's general types; others by what it calls the work in CSL. */
const KINDS: Readonly<Record<string, Kind>> = {
  dataset: 'dataset',
  software: 'software',
  computationalnotebook: 'software',
  journalarticle: 'article-journal',
  conferencepaper: 'paper-conference',
  conferenceproceeding: 'book',
  bookchapter: 'chapter',
  book: 'book',
  preprint: 'article',
  report: 'report',
  standard: 'report',
  dissertation: 'thesis',
}
const IN_CSL: Readonly<Record<string, Kind>> = {
  'article-journal': 'article-journal',
  'paper-conference': 'paper-conference',
  chapter: 'chapter',
  book: 'book',
  report: 'report',
  thesis: 'thesis',
  dataset: 'dataset',
}

export function readAttributes(work: Attributes): Work {
  const { creators, contributors, titles, publisher, container, types, version, language } = work
  const general = types?.resourceTypeGeneral ?? ''
  const authors = (creators ?? []).flatMap(contributor)
  const editors = (contributors ?? []).filter(({ contributorType }) => contributorType === 'Editor')
  const kind = KINDS[general.toLowerCase()] ?? IN_CSL[types?.citeproc ?? ''] ?? 'document'
  const host = kind === 'dataset' || kind === 'software' ? null : container
  return {
    doi: work.doi.toLowerCase(),
    kind,
    type: general || 'document',
    title: text(titles?.find(({ titleType }) => !titleType)?.title ?? titles?.[0]?.title),
    authors: fewest(authors),
    authorCount: authors.length,
    editors: fewest(editors.flatMap(contributor)),
    container: text(host?.title),
    containerShort: null,
    publisher: text(publisher),
    date: dateIn(work),
    volume: text(host?.volume),
    issue: text(host?.issue),
    pages: pagesIn(host),
    articleNumber: null,
    edition: null,
    version: text(version),
    issn: container?.identifierType === 'ISSN' && container.identifier ? [container.identifier] : [],
    isbn: [],
    language: text(language),
    citedBy: work.citationCount ?? null,
    isRetracted: null,
    retraction: null,
  }
}

/** The day it was issued, where that is in the year it counts for. */
function dateIn({ publicationYear: year, dates }: Attributes): readonly number[] {
  const issued = dates?.find(({ dateType }) => dateType === 'Issued')?.date ?? ''
  const parts = (/^(\d{4})(?:-(\d\d))?(?:-(\d\d))?/.exec(issued) ?? []).slice(1).flatMap((part) => part || [])
  const date = dateOf({ 'date-parts': [parts.map(Number)] })
  if (year === undefined || year === null || year === date[0]) return date
  return dateOf({ 'date-parts': [[year]] })
}

function pagesIn(container: Container | null | undefined): string | null {
  const [start, end] = [text(container?.firstPage), text(container?.lastPage)]
  return pageRange(start === null ? null : end === null ? start : `${start}-${end}`)
}

/** Names are often given as a whole only, with a comma where they are a person's. */
function contributor({ name, givenName, familyName, nameType, nameIdentifiers }: Person): Contributor[] {
  const whole = text(name)
  const [, before = null, after = null] = /^([^,]+),\s*([^,]+)$/.exec(whole ?? '') ?? []
  const isGroup = nameType === 'Organizational'
  const family = isGroup ? null : (text(familyName) ?? before)
  const given = isGroup ? null : (text(givenName) ?? after)
  const id = nameIdentifiers?.find(({ nameIdentifierScheme: scheme }) => scheme === 'ORCID')?.nameIdentifier
  const orcid = /\d{4}-\d{4}-\d{4}-\d{3}[\dX]/.exec(id ?? '')?.[0] ?? null
  if (family !== null) return [{ name: null, given, family, suffix: null, orcid }]
  return whole === null ? [] : [{ name: whole, given: null, family: null, suffix: null, orcid }]
}

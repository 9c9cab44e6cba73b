import {
  Failure,
  InvalidParameter,
  isJsonObject,
  type Context,
  type JsonObject,
  type Warning,
} from 'ratecard/handler'
import type { Crossref, Hit } from '../../sources/crossref.ts'
import type { Contributor, Work } from '../../sources/works/work.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { cslJson } from './citation/csl-json.ts'
import { doiAddress, readDoi } from './citation/doi.ts'
import { similarity, wordsOf } from './citation/similarity.ts'
import { inFull, givenFirst } from './citation/person-names.ts'
import { resolve, type Agencies, type Resolved } from './citation/resolve.ts'
import { ris } from './citation/ris.ts'
import { references } from './citation/styles.ts'

/** Another work may have come to fit better by tomorrow; a DOI means the same for ever. */
const FOUND_FOR = 24 * 60 * 60_000
/** Cache time when an agency was skipped, which may know better, above all about a retraction. */
const PASSED_OVER_FOR = 5 * 60_000
const UNSURE = 0.5
const SHOWN_IN_SAMPLE = 3

/** The reference of a work in nine styles, by its DOI, or by what is known of it. */
export function citation(
  agencies: Agencies & { readonly crossref: Crossref },
): HandlerWithPreview<'util/citation'> {
  return {
    async run({ doi, q }, context) {
      if ((doi.trim() === '') === (q.trim() === ''))
        throw new InvalidParameter(doi === '' ? 'doi' : 'q', 'provide exactly one of doi or q')
      if (doi.trim() !== '') {
        const wanted = readDoi(doi)
        if (wanted === undefined)
          throw new InvalidParameter('doi', 'doi must be a DOI, such as 10.1038/nature14539')
        const resolved = await resolve(wanted, agencies, context)
        return answer({ doi }, resolved)
      }
      const within = readDoi(q)
      if (within !== undefined) return answer({ q }, await resolve(within, agencies, context))
      const [best, ...others] = await search(q, agencies.crossref, context)
      if (best === undefined) throw new Failure('not_found', `No work found for q '${q}'`)
      const resolved = await resolve(best.work.doi, agencies, context)
      const found = await answer({ q }, resolved, [best, ...others])
      return { freshFor: FOUND_FOR, ...found }
    },
    preview,
  }
}

interface Candidate extends Hit {
  readonly confidence: number
}

/** The likeliest first; of those that are alike, in Crossref's order. */
async function search(q: string, crossref: Crossref, { signal }: Context): Promise<readonly Candidate[]> {
  if (wordsOf(q).size === 0) throw new InvalidParameter('q', 'q must contain words')
  const hits = await crossref.search(q, signal)
  return hits
    .map((hit) => ({ ...hit, confidence: similarity(q, hit.work) }))
    .toSorted((one, other) => other.confidence - one.confidence)
}

async function answer(
  query: JsonObject,
  { work, source, resolvedBy, at, warnings }: Resolved,
  candidates: readonly Candidate[] = [],
) {
  // Its table for foreign letters is not needed before.
  const { bibtex } = await import('./citation/bibtex.ts')
  const [best] = candidates
  return {
    source: [source],
    fetchedAt: at,
    ...(warnings.length === 0 ? {} : { freshFor: PASSED_OVER_FOR }),
    warnings: [...warnings, ...unsure(best), ...retracted(work), ...shortened(work), ...cased(work)],
    body: {
      query,
      doi: work.doi,
      resolved_by: resolvedBy,
      confidence: best?.confidence ?? 1,
      work: describe(work),
      citations: references(work),
      bibtex: bibtex(work),
      ris: ris(work),
      csl_json: cslJson(work),
      candidates: candidates.map(({ work: { doi, title, date }, score, confidence }) => ({
        doi,
        title,
        year: date[0] ?? null,
        score,
        confidence,
      })),
    },
  }
}

function describe(work: Work): JsonObject {
  const { retraction } = work
  return {
    title: work.title,
    authors: work.authors.map(nameOf),
    author_count: work.authorCount,
    editors: work.editors.map(nameOf),
    container_title: work.container,
    publisher: work.publisher,
    year: work.date[0] ?? null,
    date: dateOf(work.date),
    volume: work.volume,
    issue: work.issue,
    pages: work.pages,
    article_number: work.articleNumber,
    edition: work.edition,
    version: work.version,
    type: work.type,
    language: work.language,
    url: doiAddress(work.doi),
    issn: work.issn,
    isbn: work.isbn,
    cited_by_count: work.citedBy,
    is_retracted: work.isRetracted,
    retraction: retraction && { doi: retraction.notice, date: dateOf(retraction.date) },
  }
}

function nameOf(person: Contributor): JsonObject {
  const { given, family, orcid } = person
  return { name: givenFirst(person, inFull), given, family, orcid }
}

/** `YYYY-MM-DD`, as far as known. */
function dateOf(date: readonly number[]): string | null {
  if (date.length === 0) return null
  return date.map((part, place) => String(part).padStart(place === 0 ? 4 : 2, '0')).join('-')
}

function unsure(best: Candidate | undefined): Warning[] {
  if (best === undefined || best.confidence >= UNSURE) return []
  const message = `the best match is '${best.work.title ?? best.work.doi}', whose title is not much like q; candidates lists others`
  return [{ code: 'low_confidence', message, source: 'crossref' }]
}

function retracted({ retraction }: Work): Warning[] {
  if (retraction === null) return []
  const notice = retraction.notice === null ? '' : `; the notice is ${doiAddress(retraction.notice)}`
  return [{ code: 'retracted', message: `this work was retracted or withdrawn${notice}` }]
}

function shortened({ authors, authorCount }: Work): Warning[] {
  if (authors.length === authorCount) return []
  const message = `of ${authorCount} authors the first ${authors.length - 1} and the last are listed`
  return [{ code: 'authors_shortened', message }]
}

/** Which words keep their capital in a sentence cannot be told from a title that has capitals everywhere. */
function cased({ title }: Work): Warning[] {
  const words = (title ?? '').match(/\p{L}{4,}/gu) ?? []
  const isHeadline = words.length >= 4 && words.every((word) => /^\p{Lu}/u.test(word))
  if (!isHeadline) return []
  const message =
    'the agency has the title in headline capitals; APA and Vancouver want sentence case: lower all but proper names'
  return [{ code: 'title_case', message }]
}

/** What the work is, and one of the styles. */
function preview({ query = null, doi = null, work, citations }: JsonObject): JsonObject {
  const { title = null, authors = null, year = null } = isJsonObject(work) ? work : {}
  const { apa: shown = null } = isJsonObject(citations) ? citations : {}
  const first = Array.isArray(authors) ? authors.slice(0, SHOWN_IN_SAMPLE) : []
  return { query, doi, work: { title, authors: first, year }, citations: { apa: shown } }
}

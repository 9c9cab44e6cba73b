import type { Json, JsonObject } from 'ratecard/handler'
import type { Contributor, Work } from '../../../sources/works/work.ts'
import { doiAddress } from './doi.ts'

/** One item of CSL-JSON 1.0.2, as reference managers read it. */
export function cslJson(work: Work): JsonObject {
  return known({
    id: work.doi,
    type: work.kind,
    genre: work.kind === 'thesis' ? 'Dissertation' : null,
    title: work.title,
    author: some(work.authors.map(nameOf)),
    editor: some(work.editors.map(nameOf)),
    'container-title': work.container,
    'container-title-short': work.containerShort,
    publisher: work.publisher,
    issued: work.date.length === 0 ? null : { 'date-parts': [work.date] },
    volume: work.volume,
    issue: work.issue,
    page: work.pages?.replace('–', '-') ?? null,
    number: work.articleNumber,
    edition: work.edition,
    version: work.version,
    language: work.language,
    ISSN: work.issn[0] ?? null,
    ISBN: work.isbn[0] ?? null,
    DOI: work.doi,
    URL: doiAddress(work.doi),
  })
}

function nameOf({ name, family, given, suffix }: Contributor): JsonObject {
  return family === null ? { literal: name } : known({ family, given, suffix })
}

function some(values: readonly Json[]): Json {
  return values.length === 0 ? null : values
}

function known(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}

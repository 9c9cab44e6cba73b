import type { Catalog } from '../catalog/catalog.ts'
import { placedDocuments, type DocumentName } from './directory.ts'

/** By what a program that knows only the origin finds each document. */
const RELATIONS: readonly (readonly [DocumentName, string])[] = [
  ['openapi', 'service-desc'],
  ['docs', 'service-doc'],
  ['api-catalog', 'api-catalog'],
  ['llms', 'describedby'],
  ['ard', 'ard'],
  ['ard', 'ai-catalog'],
]

/** The Link header of `/` (RFC 8288): the documents that are served, each under its relation. */
export function linkHeader(catalog: Catalog): string {
  const placed = placedDocuments(catalog, '')
  return RELATIONS.flatMap(([name, relation]) => {
    const paths = placed.find((document) => document.name === name)?.paths ?? []
    // One document has two names under /.well-known/, and each relation means one of them.
    const path = paths.find((each) => each.includes(relation)) ?? paths[0]
    return path === undefined ? [] : [`<${path}>; rel="${relation}"`]
  }).join(', ')
}

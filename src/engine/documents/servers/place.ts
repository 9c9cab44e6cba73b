import type { Catalog } from '../../catalog/catalog.ts'
import { placedDocuments } from '../directory.ts'

/** Where the page of a companion server stands: under the documentation, if that is served. */
export function serverPagePath(catalog: Catalog, name: string): string | undefined {
  const docs = placedDocuments(catalog, '').find((placed) => placed.name === 'docs')?.paths[0]
  return docs === undefined ? undefined : `${docs === '/' ? '' : docs}/servers/${name}`
}

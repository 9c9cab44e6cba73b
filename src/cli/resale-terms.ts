import type { Catalog, Resale } from '../engine/catalog/catalog.ts'

/** A source whose data the catalog sells, and what its terms say about that. */
export interface ResaleTerms {
  /** Name in the catalog. */
  readonly name: string
  readonly title: string
  readonly resale: Resale
  readonly terms: string | undefined
  readonly credentials: readonly string[]
  /** Paid routes that sell it. */
  readonly paths: readonly string[]
}

/** The sources of all paid routes that are not planned only. */
export function resaleTerms({ sources, routes }: Catalog): ResaleTerms[] {
  return Object.entries(sources).flatMap(([name, { title, resale, terms, credentials }]) => {
    const paths = routes
      .filter(
        ({ kind, operation }) => kind === 'paid' && !operation.planned && operation.sources.includes(name),
      )
      .map(({ path }) => path)
    return paths.length === 0 ? [] : [{ name, title, resale, terms, credentials, paths }]
  })
}

/** What a source's terms leave open and on which routes; undefined where its data may be sold. */
export function openTerms({ resale, terms, paths }: ResaleTerms): string | undefined {
  if (resale === 'allowed') return undefined
  const state = resale === 'unknown' ? 'does not say whether it may be sold' : 'may be sold by agreement only'
  return `${state}: ${paths.join(', ')}${terms === undefined ? '' : `; terms: ${terms}`}`
}

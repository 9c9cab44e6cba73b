import type { Catalog, Route } from '../catalog/catalog.ts'
import { byCategory } from './listing.ts'

/** Routes that are shown together. */
export interface Chapter {
  readonly title: string
  /** Holds a dot, which no name of a route does. */
  readonly anchor: string
  readonly routes: readonly Route[]
}

/** Paid routes by category, in the order categories appear, and what is free and no preview of them last. */
export function chaptersOf(catalog: Catalog, routes: readonly Route[]): Chapter[] {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const previews = new Set(paid.map(({ sample }) => sample))
  const free = routes.filter(({ kind, path }) => kind !== 'paid' && !previews.has(path))
  const sold = byCategory(catalog, paid).map(({ id, title, entries }) => ({
    title: id === undefined ? 'Paid endpoints' : title,
    anchor: `category.${id ?? ''}`,
    routes: entries,
  }))
  return free.length === 0 ? sold : [...sold, { title: 'Free endpoints', anchor: 'docs.free', routes: free }]
}

/** The free preview of each paid route that has one, by the path of the paid one. */
export function previewsOf(routes: readonly Route[]): ReadonlyMap<string, Route> {
  return new Map(
    routes.flatMap((route): [string, Route][] => (route.full === undefined ? [] : [[route.full, route]])),
  )
}

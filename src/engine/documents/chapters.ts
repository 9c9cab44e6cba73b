import type { Catalog, Route } from '../catalog/catalog.ts'

/** Routes that are shown together. */
export interface Chapter {
  readonly title: string
  /** Holds a dot, which no name of a route does. */
  readonly anchor: string
  readonly routes: readonly Route[]
}

/** Paid routes by category, in the order categories appear, and what is free and no preview of them last. */
export function chaptersOf({ categories }: Catalog, routes: readonly Route[]): Chapter[] {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const previews = new Set(paid.map(({ sample }) => sample))
  const free = routes.filter(({ kind, path }) => kind !== 'paid' && !previews.has(path))
  const names = [...new Set(paid.map(({ operation }) => operation.category))]
  const sold = names.map((name) => ({
    title: name === undefined ? 'Paid endpoints' : (categories[name] ?? name),
    anchor: `category.${name ?? ''}`,
    routes: paid.filter(({ operation }) => operation.category === name),
  }))
  const rest = { title: 'Free endpoints', anchor: 'docs.free', routes: free }
  return [...sold, rest].filter((chapter) => chapter.routes.length > 0)
}

import type { Catalog, Route } from '../catalog/catalog.ts'
import { chaptersOf, listedRoutes } from './listed-operations.ts'
import { listedServers, serverPagePath } from './mcp-servers.ts'
import { viewRoute } from './operation-view.ts'
import { type Facts, placedDocuments } from './registry.ts'
import type { TemplateContext } from './template.ts'

/** Of a longer list a page shows the neighbours of its own row. */
const LONGEST = 60

/** What stands beside the documentation: its parts, and what is served with its prices. */
export function guideOf(catalog: Catalog, facts: Facts, current?: Route): TemplateContext {
  const { docs, errors } = placesOf(catalog, facts)
  const routes = listedRoutes(catalog)
  const chapters = chaptersOf(catalog, routes)
  const count = chapters.reduce((sum, chapter) => sum + chapter.routes.length, 0)
  return {
    search: docs,
    errors,
    payment: docs !== '' && routes.some(({ kind }) => kind === 'paid') ? `${docs}#docs.payment` : '',
    servers: listedServers(catalog, facts).map(({ name, title }) => ({
      title,
      place: serverPagePath(catalog, name) ?? '',
    })),
    chapters: chapters.map((chapter) => ({
      title: chapter.title,
      place: docs === '' ? '' : `${docs}#${chapter.anchor}`,
      rows: (count <= LONGEST ? chapter.routes : neighbours(chapter.routes, current)).map((route) => {
        const { title, price, page } = viewRoute(catalog, facts, route)
        return { title, price, page, current: route === current }
      }),
    })),
  }
}

function neighbours(routes: readonly Route[], current: Route | undefined): readonly Route[] {
  const place = current === undefined ? -1 : routes.indexOf(current)
  if (place < 0) return []
  const start = Math.max(0, Math.min(place - LONGEST / 2, routes.length - LONGEST))
  return routes.slice(start, start + LONGEST)
}

/** The way from the documentation to the page of a route. */
export function trailOf(catalog: Catalog, facts: Facts, route: Route): TemplateContext[] {
  const { docs } = placesOf(catalog, facts)
  if (docs === '') return []
  const chapter = chaptersOf(catalog, listedRoutes(catalog)).find(({ routes }) => routes.includes(route))
  return [
    { title: 'Documentation', place: docs },
    ...(chapter === undefined ? [] : [{ title: chapter.title, place: `${docs}#${chapter.anchor}` }]),
  ]
}

function placesOf(catalog: Catalog, { baseUrl }: Facts): { readonly docs: string; readonly errors: string } {
  const placed = placedDocuments(catalog, baseUrl)
  const pathOf = (name: string): string => placed.find((each) => each.name === name)?.paths[0] ?? ''
  return { docs: pathOf('docs'), errors: pathOf('docs-errors') }
}

import { GuardedPaths } from './guarded-paths.ts'
import type { Pages } from './rendered-pages.ts'
import type { Revision } from './revision.ts'

/** What belongs to a catalog that stands in front of a site. */
export interface Boundary {
  readonly site: URL
  /** Whether a path is answered or refused here, whatever the method. */
  isOurs(path: string): boolean
}

/** Undefined when there is no site. */
export function boundaryOf(
  { catalog, live, operationPage }: Pick<Revision, 'catalog' | 'live' | 'operationPage'>,
  pages: Pages,
): Boundary | undefined {
  const { passthrough } = catalog
  if (passthrough === undefined) return undefined
  const guarded = new GuardedPaths(catalog, passthrough)
  return {
    site: new URL(passthrough.url),
    isOurs: (path) =>
      // The asterisk of `OPTIONS *` and what is no path at all.
      !path.startsWith('/') ||
      /^\/payments(?:\/|$)/.test(path) ||
      live.has(path) ||
      pages.has(path) ||
      operationPage(path) !== undefined ||
      guarded.holds(path),
  }
}

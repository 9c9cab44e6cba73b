import { type Catalog, colonTemplate, type Passthrough } from '../catalog/catalog.ts'
import { IndexedRouter } from './indexed-router.ts'
import { readingsOf } from './path-readings.ts'

/**
 * Paths that never reach the site behind the catalog: those of its routes, those at which the site itself has what is sold,
 * and those that the operator denies. A path that a server may take for one of them is one of them.
 */
export class GuardedPaths {
  readonly #sold = new IndexedRouter()
  readonly #denied: readonly RegExp[]

  constructor({ routes, operations }: Pick<Catalog, 'routes' | 'operations'>, passthrough: Passthrough) {
    const { host } = new URL(passthrough.url)
    const behind = operations.flatMap(({ price, upstream }) =>
      price === undefined || upstream === undefined ? [] : pathsAt(host, upstream.url),
    )
    const paths = [...routes.map(({ path }) => colonTemplate(path)), ...behind]
    for (const path of new Set(paths.map((each) => each.toLowerCase())))
      this.#sold.register(path, ['GET'], () => undefined)
    this.#denied = passthrough.deny.map(patternOf)
  }

  holds(path: string): boolean {
    const readings = readingsOf(path)
    if (readings === undefined) return true
    for (const reading of readings)
      if (this.#sold.match(reading, 'GET').route || this.#denied.some((pattern) => pattern.test(reading)))
        return true
    return false
  }
}

/** The path of an upstream at this host, with a template for each segment that holds a parameter. */
function pathsAt(host: string, template: string): string[] {
  const url = new URL(template.replace(/\{[^{}]*\}/g, '__parameter__'))
  if (url.host !== host) return []
  const segments = url.pathname
    .split('/')
    .map((segment, at) =>
      segment.includes('__parameter__') ? `:p${at}` : segment.replace(/[{}()[\]+?!:*\\]/g, '\\$&'),
    )
  return [segments.join('/').replace(/(?<=.)\/$/, '')]
}

function patternOf(path: string): RegExp {
  const text = path.toLowerCase().replace(/\/+$/, '')
  const spelt = text
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, (stars) => (stars.length > 1 ? '.*' : '[^/]*'))
  return new RegExp(`^${spelt}(?:/|$)`)
}

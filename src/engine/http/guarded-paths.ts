import type { Catalog, Passthrough } from '../catalog/catalog.ts'
import { readingsOf } from './path-readings.ts'
import { PathTree } from './path-tree.ts'

/**
 * Paths that never reach the site behind the catalog: those of its routes, those at which the site itself has what is sold,
 * and those that the operator denies. A path that a server may take for one of them is one of them.
 */
export class GuardedPaths {
  readonly #sold = new PathTree()
  readonly #denied: readonly RegExp[]

  constructor({ routes, operations }: Pick<Catalog, 'routes' | 'operations'>, passthrough: Passthrough) {
    for (const { path } of routes) this.#sold.add(path.toLowerCase())
    const { host } = new URL(passthrough.url)
    for (const { price, upstream } of operations)
      if (price !== undefined && upstream !== undefined) {
        const path = pathAt(host, upstream.url)
        if (path !== undefined) this.#sold.add(path)
      }
    this.#denied = passthrough.deny.map(patternOf)
  }

  holds(path: string): boolean {
    const readings = readingsOf(path)
    if (readings === undefined) return true
    for (const reading of readings)
      if (this.#sold.has(reading) || this.#denied.some((pattern) => pattern.test(reading))) return true
    return false
  }
}

/** The path of an upstream at this host, in which a segment with a parameter may be any; undefined: it is elsewhere. */
function pathAt(host: string, template: string): string | undefined {
  const url = new URL(template.replace(/\{[^{}]*\}/g, PARAMETER))
  if (url.host !== host) return undefined
  const path = url.pathname.toLowerCase().replace(/(?<=.)\/$/, '')
  return path
    .split('/')
    .map((segment) => (segment.includes(PARAMETER) ? '{}' : segment))
    .join('/')
}

/** What stands for a parameter while the address is parsed. */
const PARAMETER = '__parameter__'

function patternOf(path: string): RegExp {
  const plain = path
    .toLowerCase()
    .replace(/\/+$/, '')
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  const pattern = plain.replace(/\*+/g, (stars) => (stars.length > 1 ? '.*' : '[^/]*'))
  return new RegExp(`^${pattern}(?:/|$)`)
}

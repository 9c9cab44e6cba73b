import { Router } from '@koa/router'
import type { Middleware } from 'koa'
import type { Route } from '../catalog/catalog.ts'
import { decodeSegment } from './path.ts'

export interface Found<T> {
  readonly served: T
  /** What stands in the route's layer. */
  readonly run: Middleware
  /** Values of the path's templates, decoded. */
  readonly path: Readonly<Record<string, string>>
}

/** Finds the route of a canonical path at a cost that does not grow with the number of routes. */
export interface RouteTable<T> {
  readonly router: Router
  find(path: string): Found<T> | undefined
}

type Layer = Router['stack'][number]

interface Entry<T> {
  readonly layer: Layer
  readonly served: T
  readonly run: Middleware
}

/**
 * Every route is a named layer of one @koa/router, so that its tools (url(), route()) work; the way to a layer is a map:
 * by the whole path, or for templates by the fixed segments before the first one and the number of segments.
 */
export function createTable<T extends { readonly route: Route }>(
  entries: readonly T[],
  middleware: (served: T) => Middleware,
): RouteTable<T> {
  const router = new Router({ sensitive: true, strict: true })
  const exact = new Map<string, Found<T>>()
  const templated = new Map<string, Entry<T>[]>()
  for (const served of entries) {
    const { name, path } = served.route
    const run = middleware(served)
    router.get(name, path.replace(/\{([^}]*)\}/g, ':$1'), run)
    const layer = router.stack.at(-1)
    if (!path.includes('{')) exact.set(path, { served, run, path: NONE })
    else if (layer !== undefined) {
      const key = prefixKey(path.split('/'), fixedSegments(path))
      templated.set(key, [...(templated.get(key) ?? []), { layer, served, run }])
    }
  }
  return { router, find: (path) => exact.get(path) ?? findTemplated(templated, path) }
}

const NONE: Readonly<Record<string, string>> = Object.freeze({})

function findTemplated<T>(
  templated: ReadonlyMap<string, readonly Entry<T>[]>,
  path: string,
): Found<T> | undefined {
  if (templated.size === 0) return undefined
  const segments = path.split('/')
  for (let fixed = segments.length - 1; fixed >= 1; fixed -= 1) {
    for (const { layer, served, run } of templated.get(prefixKey(segments, fixed)) ?? []) {
      const values = valuesOf(layer, path)
      if (values !== undefined) return { served, run, path: values }
    }
  }
  return undefined
}

function valuesOf(layer: Layer, path: string): Readonly<Record<string, string>> | undefined {
  const match = layer.regexp.exec(path)
  if (match === null) return undefined
  const values: Record<string, string> = {}
  for (const [index, { name }] of layer.paramNames.entries()) {
    const value = decodeSegment(match[index + 1] ?? '')
    if (value === undefined || value === '') return undefined
    values[name] = value
  }
  return values
}

function fixedSegments(path: string): number {
  const segments = path.split('/')
  return segments.findIndex((segment) => segment.startsWith('{'))
}

function prefixKey(segments: readonly string[], fixed: number): string {
  return `${segments.length}:${segments.slice(0, fixed).join('/')}`
}

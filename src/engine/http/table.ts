import { Router } from '@koa/router'
import type { Middleware } from 'koa'
import { colonTemplate, type Route } from '../catalog/catalog.ts'
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
  readonly served: readonly T[]
  find(path: string): Found<T> | undefined
}

type Layer = Router['stack'][number]

interface Entry<T> {
  readonly layer: Layer
  readonly served: T
  readonly run: Middleware
}

/** One segment deeper with every step: fixed segments by their text, and what a template leads to. */
interface Branch<T> {
  readonly fixed: Map<string, Branch<T>>
  template: Branch<T> | undefined
  entry: Entry<T> | undefined
}

/**
 * Every route is a named layer of one @koa/router, so that its tools (url(), route()) work; the way to a layer is a map
 * by the whole path, or where there are templates a walk along the segments, on which fixed ones go before templates.
 */
export function createTable<T extends { readonly route: Route }>(
  entries: readonly T[],
  middleware: (served: T) => Middleware,
): RouteTable<T> {
  const router = new Router({ sensitive: true, strict: true })
  const exact = new Map<string, Found<T>>()
  const templated = branch<T>()
  for (const served of entries) {
    const { name, path } = served.route
    const run = middleware(served)
    router.get(name, colonTemplate(path), run)
    const layer = router.stack.at(-1)
    if (!path.includes('{')) exact.set(path, { served, run, path: NONE })
    else if (layer !== undefined) grow(templated, path).entry = { layer, served, run }
  }
  return { router, served: entries, find: (path) => exact.get(path) ?? findTemplated(templated, path) }
}

const NONE: Readonly<Record<string, string>> = Object.freeze({})

function branch<T>(): Branch<T> {
  return { fixed: new Map(), template: undefined, entry: undefined }
}

function grow<T>(root: Branch<T>, path: string): Branch<T> {
  return path.split('/').reduce((from, segment) => {
    if (segment.startsWith('{')) return (from.template ??= branch())
    const next = from.fixed.get(segment) ?? branch()
    from.fixed.set(segment, next)
    return next
  }, root)
}

function findTemplated<T>(root: Branch<T>, path: string): Found<T> | undefined {
  const entry = walk(root, path.split('/'), 0)
  const values = entry === undefined ? undefined : valuesOf(entry.layer, path)
  return entry === undefined || values === undefined
    ? undefined
    : { served: entry.served, run: entry.run, path: values }
}

function walk<T>(from: Branch<T>, segments: readonly string[], at: number): Entry<T> | undefined {
  const segment = segments[at]
  if (segment === undefined) return from.entry
  const next = from.fixed.get(segment)
  const found = next === undefined ? undefined : walk(next, segments, at + 1)
  if (found !== undefined || from.template === undefined) return found
  return walk(from.template, segments, at + 1)
}

/** Undefined when a value is empty or its encoding is broken. */
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

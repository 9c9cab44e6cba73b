import { Router, type MatchResult } from '@koa/router'
import type { Context } from 'koa'
import { METHODS } from 'node:http'

type Layer = Router['stack'][number]

/** Templates with fixed and variable segments at the same positions. */
interface Shape {
  readonly isVariable: readonly boolean[]
  readonly layers: Map<string, Layer[]>
}

/**
 * A router whose lookup time does not grow with the number of routes. Exact paths are found in a map and take
 * precedence over templates; templates are found by their fixed segments, the one with the earlier fixed segment
 * first.
 */
export class IndexedRouter extends Router {
  readonly #exact = new Map<string, Layer[]>()
  /** By number of segments. */
  readonly #shapes = new Map<number, Shape[]>()
  /** Middleware and regular expressions, which are tested one by one. */
  readonly #others: Layer[] = []

  constructor() {
    // With every method known, an unsupported method of a path is always answered 405.
    super({ sensitive: true, strict: true, methods: [...METHODS] })
  }

  override register(...args: Parameters<Router['register']>): ReturnType<Router['register']> {
    const registered = super.register(...args)
    if (!(registered instanceof Router)) this.#index(registered)
    return registered
  }

  override match(path: string, method: string): MatchResult {
    const exact = this.#exact.get(path) ?? []
    const found = exact.some(({ methods }) => methods.includes(method))
      ? exact
      : [...exact, ...this.#templated(path)]
    const others = this.#others.filter((layer) => layer.match(path))
    const all = [...others, ...found]
    const pathAndMethod = all.filter(({ methods }) => methods.length === 0 || methods.includes(method))
    return { path: all, pathAndMethod, route: pathAndMethod.some(({ methods }) => methods.length > 0) }
  }

  #index(layer: Layer): void {
    const { path, methods } = layer
    if (typeof path !== 'string' || methods.length === 0 || /[*{}()[\]+?!\\"]/.test(path))
      this.#others.push(layer)
    else if (!path.includes(':')) append(this.#exact, path, layer)
    else {
      const segments = path.split('/')
      const isVariable = segments.map((segment) => segment.includes(':'))
      const shapes = this.#shapes.get(segments.length) ?? []
      this.#shapes.set(segments.length, shapes)
      let shape = shapes.find((each) =>
        each.isVariable.every((variable, index) => variable === isVariable[index]),
      )
      if (shape === undefined) {
        shape = { isVariable, layers: new Map() }
        shapes.push(shape)
        shapes.sort((one, other) => rank(one) - rank(other))
      }
      append(shape.layers, keyOf(segments, shape), layer)
      // `{id}.pdf` is more exact than `{id}`.
      shape.layers.get(keyOf(segments, shape))?.sort((one, other) => suffixes(other) - suffixes(one))
    }
  }

  #templated(path: string): Layer[] {
    const segments = path.split('/')
    return (this.#shapes.get(segments.length) ?? [])
      .flatMap((shape) => shape.layers.get(keyOf(segments, shape)) ?? [])
      .filter((layer) => layer.match(path))
  }
}

function append(map: Map<string, Layer[]>, key: string, layer: Layer): void {
  const layers = map.get(key)
  if (layers === undefined) map.set(key, [layer])
  else layers.push(layer)
}

function keyOf(segments: readonly string[], { isVariable }: Shape): string {
  return segments.map((segment, index) => (isVariable[index] ? ':' : segment)).join('/')
}

/** Length of the fixed suffixes after variables. */
function suffixes({ path }: Layer): number {
  return String(path).replace(/[^/]*:\w+/g, '').length - String(path).replace(/[^/]*:[^/]*/g, '').length
}

/** The path that the router has matched, as written in the catalog. */
export function templateOf(ctx: Context): string {
  const matched: readonly Layer[] | undefined = ctx['matched']
  return String(matched?.[0]?.path).replace(/:(\w+)/g, '{$1}')
}

/** Lower when the first difference is a fixed segment. */
function rank({ isVariable }: Shape): number {
  return isVariable.reduce((sum, variable) => sum * 2 + Number(variable), 0)
}

import { isDeepStrictEqual } from 'node:util'
import {
  isCollection,
  isMap,
  isNode,
  isPair,
  parseDocument,
  type Document,
  type Pair,
  type YAMLMap,
} from 'yaml'
import { spellDraft, type Draft } from '../route-yaml.ts'

export type Insertion =
  | { readonly kind: 'inserted'; readonly text: string; readonly line: number }
  /** A phrase that follows the name of the file. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** Writes a route after the last one of a catalog; every other character of the file stays as it is. */
export function insertRoute(text: string, draft: Draft): Insertion {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const whole = text.endsWith('\n') ? text : text + eol
  const before = read(whole)
  if (before.errors.length > 0) return fault('cannot be read: "ratecard check" says why')
  const routes = routesOf(before)
  const [first, ...more] = routes?.items ?? []
  if (routes === undefined || first === undefined)
    return fault('has no "routes:" with a route on a line of its own below it')
  if (routes.has(draft.path)) return fault(`has ${draft.path} already`)
  const [start, last] = [startOf(first), endOf(more.at(-1) ?? first)]
  const indent = whole.slice(whole.lastIndexOf('\n', start) + 1, start)
  const apart = more.length === 0 || /\n[ \t]*\r?\n/.test(whole.slice(start, startOf(more.at(-1) ?? first)))
  const lines = spellDraft(draft, indent).map((line) => line + eol)
  const trimmed = whole.slice(0, last).trimEnd().length
  // A text of several lines may end in empty ones, and they may be part of it.
  for (const [end, gap] of [
    [trimmed, apart ? [eol] : []],
    [last, apart ? [eol] : []],
    [last, []],
  ] as const) {
    const place = whole.indexOf('\n', Math.max(0, end - 1)) + 1
    const made = whole.slice(0, place) + [...gap, ...lines].join('') + whole.slice(place)
    const line = whole.slice(0, place).split('\n').length + gap.length
    if (isAddition(before, read(made), draft.path)) return { kind: 'inserted', text: made, line }
  }
  return fault('ends its routes in a way that nothing can be written after them')
}

function fault(sentence: string): Insertion {
  return { kind: 'fault', sentence }
}

function read(text: string): Document {
  return parseDocument(text, { version: '1.2' })
}

/** Undefined in braces, where there are no lines to write between. */
function routesOf({ contents }: Document): YAMLMap | undefined {
  const routes: unknown = isMap(contents) ? contents.get('routes') : undefined
  return isMap(routes) && routes.flow !== true ? routes : undefined
}

function startOf({ key }: Pair): number {
  return isNode(key) ? (key.range?.[0] ?? 0) : 0
}

/** End of the last value within; a mapping includes the comments after it. */
function endOf(part: unknown): number {
  if (isPair(part)) return endOf(isNode(part.value) ? part.value : part.key)
  if (isCollection(part) && part.flow !== true && part.items.length > 0) return endOf(part.items.at(-1))
  return isNode(part) ? (part.range?.[1] ?? 0) : 0
}

/** Whether the file has its former content plus the new route. */
function isAddition(before: Document, after: Document, path: string): boolean {
  const isThere = after.errors.length === 0 && routesOf(after)?.delete(path) === true
  return isThere && isDeepStrictEqual(before.toJS(), after.toJS())
}

import { stringify } from 'yaml'
import type { Json, JsonObject } from '../engine/base/json.ts'

type DeclaredEntry = readonly [name: string, declared: JsonObject, comment?: string]

/** A route to be added to a catalog. */
export interface Draft {
  /** With its method in front when it is not GET. */
  readonly path: string
  /** As the file spells it; undefined: the default of the catalog. */
  readonly price: string | undefined
  /** The other keys of the route, in the order they are written in. */
  readonly keys: readonly (readonly [string, Json])[]
  readonly parameters: readonly DeclaredEntry[]
  /** A body with properties; JSON where it has no media type. */
  readonly body?: { readonly mediaType?: string; readonly properties: readonly DeclaredEntry[] } | undefined
}

/** A route key that a block mapping takes without quotes. */
const PLAIN_KEY = /^(?:[A-Z]+ )?\/[\w.~{}*%/-]*$/

/** Longer than this, a mapping takes a line for each of its keys. */
const WIDTH = 100

/** The lines of a route as a person would write them; `indent` is one step in. */
export function spellDraft({ path, price, keys, parameters, body }: Draft, indent: string): string[] {
  const declare = (entries: readonly DeclaredEntry[], depth: string): string[] =>
    entries.flatMap(([name, declared, comment]) =>
      entry(name, declared, indent, comment).map((line) => depth + line),
    )
  const own = [
    ...(price === undefined ? [] : [`price: ${price}`]),
    ...keys.flatMap(([key, value]) => entry(key, value, indent)),
    ...(parameters.length === 0 ? [] : ['parameters:', ...declare(parameters, indent)]),
    ...(body === undefined
      ? []
      : [
          'body:',
          ...(body.mediaType === undefined ? [] : [`${indent}media_type: ${body.mediaType}`]),
          `${indent}properties:`,
          ...declare(body.properties, indent + indent),
        ]),
  ]
  return [`${PLAIN_KEY.test(path) ? path : spell(path)}:`, ...own.map((line) => indent + line)].map(
    (line) => indent + line,
  )
}

function entry(key: string, value: Json, indent: string, comment?: string): string[] {
  const behind = comment === undefined ? '' : ` # ${comment}`
  const line = `${key}: ${spell(value)}`
  if (line.length <= WIDTH || typeof value !== 'object' || value === null || Array.isArray(value))
    return [line + behind]
  return [
    `${key}:${behind}`,
    ...Object.entries(value).map(([each, below]) => `${indent}${each}: ${spell(below)}`),
  ]
}

/** In one line, quoted where YAML would take it for something else. */
export function spell(value: Json): string {
  const json = JSON.stringify(value)
  // YAML would write a text of several lines over several lines; JSON is YAML too.
  if (json.includes('\\n')) return json
  return stringify(value, {
    collectionStyle: 'flow',
    lineWidth: 0,
    singleQuote: true,
    blockQuote: false,
  }).trimEnd()
}

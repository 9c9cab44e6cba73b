import { stringify } from 'yaml'
import type { Json, JsonObject } from '../engine/internal.ts'

/** A route before it stands in a catalog. */
export interface Draft {
  readonly path: string
  /** As the file spells it; undefined: left for the operator, and refused until it is set. */
  readonly price: string | undefined
  /** The other keys of the route, in the order they are written in. */
  readonly keys: readonly (readonly [string, Json])[]
  readonly parameters: readonly (readonly [string, JsonObject])[]
}

/** Longer than this, a mapping takes a line for each of its keys. */
const WIDTH = 100

/** The lines of a route as a person would write them; `indent` is one step in. */
export function spellDraft({ path, price, keys, parameters }: Draft, indent: string): string[] {
  const own = [
    `price: ${price ?? '# USD for one call, such as 0.005'}`,
    ...keys.flatMap(([key, value]) => entry(key, value, indent)),
    ...(parameters.length === 0 ? [] : ['parameters:']),
    ...parameters.flatMap(([name, declared]) => entry(name, declared, indent).map((line) => indent + line)),
  ]
  return [`${path}:`, ...own.map((line) => indent + line)].map((line) => indent + line)
}

function entry(key: string, value: Json, indent: string): string[] {
  const line = `${key}: ${spell(value)}`
  if (line.length <= WIDTH || typeof value !== 'object' || value === null || Array.isArray(value))
    return [line]
  return [`${key}:`, ...Object.entries(value).map(([each, below]) => `${indent}${each}: ${spell(below)}`)]
}

/** In one line, quoted where YAML would take it for something else. */
export function spell(value: Json): string {
  return stringify(value, {
    collectionStyle: 'flow',
    lineWidth: 0,
    singleQuote: true,
    blockQuote: false,
  }).trimEnd()
}

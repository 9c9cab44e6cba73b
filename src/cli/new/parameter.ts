import type { Json, JsonObject } from '../../engine/index.ts'
import { UsageError } from '../command.ts'

/** A parameter as it is given on a command line: `text:string!`, `limit:integer=10`, `country:string`. */
export interface GivenParameter {
  readonly name: string
  readonly type: keyof typeof EXAMPLES
  /** As it is spelt; undefined: there is none. */
  readonly preset: string | undefined
  readonly required: boolean
}

/** What a required parameter is shown with until somebody knows better. */
const EXAMPLES = { string: 'example', integer: 1, number: 1.5, boolean: true } as const

/** Throws `UsageError`. */
export function parseParameter(text: string): GivenParameter {
  const match = /^([a-z][a-z0-9_]*):([a-z]+)(?:=([^]*)|(!))?$/.exec(text)
  const [, name = '', word = '', preset, mark] = match ?? []
  const type = TYPES.find((each) => each === word)
  if (match === null || type === undefined)
    throw new UsageError(
      `--parameter takes name:type, name:type=default or name:type! (required), with one of ${TYPES.join(', ')}; not "${text}"`,
    )
  return { name, type, preset, required: mark === '!' }
}

const TYPES = ['string', 'integer', 'number', 'boolean'] as const

/** As a catalog declares it. What stands in the path is always given, so that its default is an example. */
export function declare({ type, preset, required }: GivenParameter, place: 'path' | 'query'): JsonObject {
  const value = preset === undefined ? undefined : readValue(type, preset)
  if (place === 'path') return { type, example: value ?? EXAMPLES[type] }
  if (required) return { type, required: true, example: EXAMPLES[type] }
  return value === undefined ? { type } : { type, default: value }
}

/** A value that does not fit stays a text, and the catalog's own check says so. */
function readValue(type: GivenParameter['type'], text: string): Json {
  if (type === 'boolean' && /^(?:true|false)$/.test(text)) return text === 'true'
  const isNumber = (type === 'integer' || type === 'number') && /^-?\d+(?:\.\d+)?$/.test(text)
  return isNumber ? Number(text) : text
}

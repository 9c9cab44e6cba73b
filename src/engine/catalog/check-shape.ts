import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject } from '../json.ts'
import { error, type Issue } from './issue.ts'
import type { Path, SourceDocument } from './parse.ts'
import { catalogSchema, type Declared } from './schema.ts'
import { didYouMean } from './suggest.ts'

/** Schema of the value an error is about, as ajv hands it over. */
type Place = ErrorObject<string, Record<string, unknown>>

const validate: ValidateFunction<Declared> = new Ajv2020({
  allErrors: true,
  verbose: true,
  allowUnionTypes: true,
  strict: true,
  strictRequired: false,
}).compile<Declared>(catalogSchema)

export interface Shaped {
  /** The catalog, faulty parts left out or replaced so that the rest can be judged too; undefined: nothing is left. */
  readonly declared: Declared | undefined
  readonly issues: readonly Issue[]
}

/** Holds a parsed file against the catalog's JSON Schema and says every difference in words. */
export function checkShape(document: SourceDocument): Shaped {
  if (validate(document.value)) return { declared: document.value, issues: [] }
  const issues = (validate.errors ?? []).flatMap((fault) => describe(fault, document))
  return { declared: mend(document.value), issues }
}

/** As many rounds as one slip can hide behind another. */
const MENDING_ROUNDS = 4

function mend(value: unknown): Declared | undefined {
  const mended: unknown = structuredClone(value)
  for (let round = 0; round < MENDING_ROUNDS; round += 1) {
    if (validate(mended)) return mended
    for (const fault of validate.errors ?? []) mendFault(mended, fault)
  }
  return undefined
}

function mendFault(root: unknown, fault: Place): void {
  const path = toPath(fault.instancePath, root)
  if (fault.keyword === 'required') {
    const owner = valueAt(root, path)
    const key = String(fault.params['missingProperty'])
    if (isRecord(owner)) owner[key] = placeholder(key)
  } else if (fault.keyword === 'additionalProperties') {
    remove(root, [...path, String(fault.params['additionalProperty'])])
  } else if (fault.propertyName !== undefined) {
    remove(root, [...path, fault.propertyName])
  } else {
    remove(root, path)
  }
}

function placeholder(key: string): unknown {
  if (key === 'catalog') return 1
  if (key === 'service') return { name: '-', version: '-' }
  if (key === 'routes') return {}
  if (key === 'networks') return ['base']
  if (key === 'price') return 'free'
  if (key === 'type') return 'string'
  if (key === 'currency') return 'USD'
  if (key === 'max_items') return 1
  return key === 'ttl' ? '1m' : '-'
}

function remove(root: unknown, path: Path): void {
  const owner = valueAt(root, path.slice(0, -1))
  const key = path.at(-1)
  if (key === undefined) return
  if (Array.isArray(owner)) owner.splice(Number(key), 1)
  else if (isRecord(owner)) delete owner[key]
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => {
    if (Array.isArray(value)) return value[Number(key)]
    return isRecord(value) ? value[key] : undefined
  }, root)
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null
}

function describe(fault: Place, document: SourceDocument): Issue[] {
  const path = toPath(fault.instancePath, document.value)
  const said = WORDS[fault.keyword]
  // propertyNames repeats what the error of the name itself has said.
  if (fault.keyword === 'propertyNames') return []
  if (said === undefined) return [error('value_invalid', document.at(path), 'this value is not allowed here')]
  return [said(fault, path, document)]
}

type Describe = (fault: Place, path: Path, document: SourceDocument) => Issue

const WORDS: Readonly<Record<string, Describe>> = {
  required: (fault, path, document) => {
    const key = String(fault.params['missingProperty'])
    const owner = path.at(-1) ?? 'the catalog'
    if (key === 'price') {
      return error(
        'price_missing',
        document.atKey(path),
        `${owner} has no price: write "price: 0.005" (USD), or "price: free"`,
      )
    }
    return error('key_missing', document.atKey(path), `${owner} needs the key "${key}"`)
  },
  additionalProperties: (fault, path, document) => {
    const key = String(fault.params['additionalProperty'])
    const known = knownKeys(fault.parentSchema)
    const nearest = didYouMean(key, known)
    const list = nearest === '' && known.length > 0 ? `; known here: ${known.join(', ')}` : nearest
    return error(
      'key_unknown',
      document.atKey([...path, key]),
      `"${key}" is not a key of a catalog here${list}`,
    )
  },
  type: (fault, path, document) => typeIssue(fault, path, document),
  enum: (fault, path, document) => {
    const allowed = list(fault.params['allowedValues'])
    const written = document.spelling(path) ?? ''
    return error(
      'value_not_allowed',
      document.at(path),
      `must be ${allowed.join(', ')}${didYouMean(written, allowed)}`,
    )
  },
  const: (fault, path, document) =>
    error('value_not_allowed', document.at(path), `must be ${JSON.stringify(fault.params['allowedValue'])}`),
  pattern: (fault, path, document) => {
    if (fault.propertyName !== undefined) return nameIssue(fault, path, document)
    return patternIssue(fault, path, document)
  },
  minLength: (_, path, document) => error('text_empty', document.at(path), 'must not be empty'),
  maxLength: (fault, path, document) =>
    error('text_too_long', document.at(path), `must have at most ${fault.params['limit']} characters`),
  minItems: (fault, path, document) =>
    error('list_too_short', document.at(path), `needs at least ${fault.params['limit']} entry`),
  maxItems: (fault, path, document) =>
    error('list_too_long', document.at(path), `may have at most ${fault.params['limit']} entries`),
  uniqueItems: (fault, path, document) =>
    error(
      'list_repeats',
      document.at([...path, Number(fault.params['i'])]),
      'this entry stands in the list twice',
    ),
  minimum: (fault, path, document) =>
    error('number_too_small', document.at(path), `must be at least ${fault.params['limit']}`),
  maximum: (fault, path, document) =>
    error('number_too_large', document.at(path), `must be at most ${fault.params['limit']}`),
}

/** A value of the wrong kind; most often a text that YAML reads as something else because it is not quoted. */
function typeIssue(fault: Place, path: Path, document: SourceDocument): Issue {
  const wanted = list(fault.params['type']).flatMap((type) => type.split(','))
  const spelling = document.spelling(path)
  const at = document.at(path)
  if (wanted.includes('string') && spelling !== undefined && typeof fault.data !== 'string') {
    if (fault.data === null && spelling === '')
      return error('value_missing', at, 'a value is missing after the colon')
    return quoteIt(spelling, fault.data, at)
  }
  if (wanted.includes('string') && isFlowTemplate(fault.data)) {
    const name = Object.keys(fault.data)[0]
    return error('quote_it', at, `YAML reads {${name}} as a mapping: quote it: "{${name}}"`)
  }
  if (fault.data === null) return error('value_missing', at, `needs ${kinds(wanted)}`)
  return error('type_wrong', at, `must be ${kinds(wanted)}, not ${kindOf(fault.data)}`)
}

/** Says how YAML has read an unquoted text. */
export function quoteIt(spelling: string, value: unknown, position: ReturnType<SourceDocument['at']>): Issue {
  const read = typeof value === 'number' ? `the number ${value}` : String(value)
  return error(
    'quote_it',
    position,
    `must be text, but YAML reads ${spelling} as ${read}: quote it: "${spelling}"`,
  )
}

function isFlowTemplate(value: unknown): value is Record<string, null> {
  return isJsonObject(value) && Object.keys(value).length === 1 && Object.values(value)[0] === null
}

function nameIssue(fault: Place, path: Path, document: SourceDocument): Issue {
  const name = String(fault.propertyName)
  const at = document.atKey([...path, name])
  if (path[0] === 'routes' && path.length === 1)
    return error('route_path_invalid', at, `a route starts with "/": "/${name}"`)
  const lower = name.toLowerCase().replace(/[^a-z0-9_]+/g, '_')
  return error(
    'name_invalid',
    at,
    `"${name}" must match ${String(fault.params['pattern'])}, for example "${lower}"`,
  )
}

const PATTERNS: readonly [RegExp, string, string][] = [
  [/\(ms\|s\|m\|h\|d\)/, 'duration_invalid', 'must be a duration such as 30s, 5m, 24h or 7d'],
  [/0x\[0-9a-fA-F\]\{40\}/, 'address_invalid', 'must be a quoted address: "0x" and 40 hexadecimal digits'],
  [/\^\/sample\//, 'sample_path_invalid', 'a sample stands under /sample/'],
  [/\^\\\.\//, 'file_path_invalid', 'a file is named from the catalog’s folder: ./folder/file.json'],
  [/https\?/, 'upstream_invalid', 'must be an address that starts with https:// or http://'],
  [
    /\[A-Z\]\[A-Z0-9_\]/,
    'variable_invalid',
    'must be the name of an environment variable (A-Z, 0-9, _), never the secret itself',
  ],
  [/\\\.\[a-z\]/, 'tool_name_invalid', 'must be server.tool_name, for example game.app_intel'],
  [/\\d\{4\}/, 'date_invalid', 'must be a quoted date: "2026-11-20"'],
]

function patternIssue(fault: Place, path: Path, document: SourceDocument): Issue {
  const pattern = String(fault.params['pattern'])
  const known = PATTERNS.find(([form]) => form.test(pattern))
  const at = document.at(path)
  return known === undefined
    ? error('text_invalid', at, `must match ${pattern}`)
    : error(known[1], at, known[2])
}

function knownKeys(schema: unknown): string[] {
  return isJsonObject(schema) && isJsonObject(schema['properties']) ? Object.keys(schema['properties']) : []
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [String(value)]
}

const ARTICLES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a mapping',
  array: 'a list',
}

function kinds(types: readonly string[]): string {
  return types.map((type) => ARTICLES[type] ?? type).join(' or ')
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return ARTICLES[typeof value] ?? typeof value
}

/** JSON Pointer to path, with list positions as numbers. */
function toPath(pointer: string, root: unknown): Path {
  let value = root
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const key = part.replace(/~1/g, '/').replace(/~0/g, '~')
      const step = Array.isArray(value) ? Number(key) : key
      value = Array.isArray(value) ? value[Number(key)] : isJsonObject(value) ? value[key] : undefined
      return step
    })
}

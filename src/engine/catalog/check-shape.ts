import { isJsonObject } from '../base/json.ts'
import { priceless } from './price/check-prices.ts'
import { didYouMean, error, type Issue, type Position, suggest } from './issue.ts'
import { type Form, formOf, properName } from './patterns.ts'
import type { Declared } from './schema.ts'
import { shapeValidator } from './shape-validator.ts'
import { knownKeys, type ShapeFault, validPart, toPath } from './shape-faults.ts'
import type { Path, SourceDocument } from './yaml-document.ts'

export interface Shaped {
  /** The valid part of the catalog; undefined when it makes no sense without the invalid part. */
  readonly declared: Declared | undefined
  readonly issues: readonly Issue[]
}

/** Validates a parsed file against the catalog's JSON Schema and reports every difference in words. */
export function checkShape(document: SourceDocument): Shaped {
  const validate = shapeValidator()
  if (validate(document.value)) return { declared: document.value, issues: [] }
  const faults = validate.errors ?? []
  const issues = faults.flatMap((fault) => describe(fault, document))
  return { declared: validPart(document.value, validate), issues }
}

function describe(fault: ShapeFault, document: SourceDocument): Issue[] {
  const path = toPath(fault.instancePath, document.value)
  if (path.length === 0 && fault.keyword === 'type') return [notACatalog(fault.data, document)]
  // propertyNames repeats the error of the name itself.
  if (fault.keyword === 'propertyNames') return []
  if (fault.keyword === 'required' && isMisspelt(fault)) return []
  const said = WORDS[fault.keyword]
  if (said === undefined) return [error('value_invalid', document.at(path), 'this value is not allowed here')]
  return [said(fault, path, document)]
}

function notACatalog(value: unknown, document: SourceDocument): Issue {
  const at = document.at([])
  if (value === null)
    return error(
      'catalog_empty',
      at,
      'there is no catalog here; begin with "catalog: 1", "service:", "routes:"',
    )
  return error(
    'type_wrong',
    at,
    `a catalog is a mapping with the keys catalog, service, payments, routes…, not ${kindOf(value)}`,
  )
}

/** A key that is missing because it is misspelt is reported at the misspelt key. */
function isMisspelt(fault: ShapeFault): boolean {
  const known = knownKeys(fault)
  const owner = isJsonObject(fault.data) ? Object.keys(fault.data) : []
  return owner.some((key) => !known.includes(key) && suggest(key, known) === fault.params['missingProperty'])
}

type Describe = (fault: ShapeFault, path: Path, document: SourceDocument) => Issue

const WORDS: Readonly<Record<string, Describe>> = {
  required: (fault, path, document) => {
    const key = String(fault.params['missingProperty'])
    const owner = path.at(-1) ?? 'the catalog'
    const words = descriptionOf(fault, key)
    return error('key_missing', document.atHome(path), `${owner} needs the key "${key}"${words}`)
  },
  additionalProperties: (fault, path, document) => {
    const key = String(fault.params['additionalProperty'])
    const known = knownKeys(fault)
    const nearest = didYouMean(key, known)
    const rest = nearest === '' && known.length > 0 ? `; known here: ${known.join(', ')}` : nearest
    return error(
      'key_unknown',
      document.atKey([...path, key]),
      `"${key}" is not a key of a catalog here${rest}`,
    )
  },
  type: (fault, path, document) => typeIssue(fault, path, document),
  enum: (fault, path, document) => {
    const allowed = list(fault.params['allowedValues'])
    const written = document.spelling(path) ?? ''
    const sentence =
      allowed.length > 1
        ? `must be one of ${allowed.join(', ')}${didYouMean(written, allowed)}`
        : `must be ${allowed.join()}`
    return error('value_not_allowed', document.at(path), sentence)
  },
  const: (fault, path, document) => {
    const allowed = fault.params['allowedValue']
    const quoted = typeof allowed === 'number' && String(allowed) === fault.data ? ', without quotes' : ''
    return error(
      'value_not_allowed',
      document.at(path),
      `must be ${JSON.stringify(allowed)}${quoted || descriptionOf(fault)}`,
    )
  },
  pattern: (fault, path, document) => {
    if (fault.propertyName !== undefined) return nameIssue(fault, path, document)
    return patternIssue(String(fault.params['pattern']), String(fault.data), document.at(path))
  },
  minLength: (_, path, document) => error('text_empty', document.at(path), 'must not be empty'),
  maxLength: (fault, path, document) =>
    error(
      'text_too_long',
      document.at(path),
      `must have at most ${String(fault.params['limit'])} characters, not ${String(fault.data).length}`,
    ),
  minItems: (fault, path, document) =>
    error('list_too_short', document.at(path), `needs at least ${String(fault.params['limit'])} entry`),
  maxItems: (fault, path, document) =>
    error('list_too_long', document.at(path), `may have at most ${String(fault.params['limit'])} entries`),
  uniqueItems: (fault, path, document) =>
    error(
      'list_repeats',
      document.at([...path, Math.max(Number(fault.params['i']), Number(fault.params['j']))]),
      'this entry is already in the list',
    ),
  minProperties: (_, path, document) =>
    error('mapping_empty', document.atKey(path), 'needs at least one entry'),
  maxProperties: (fault, path, document) =>
    error('key_repeated', document.atKey(path), `takes one of ${knownKeys(fault).join(', ')}`),
  minimum: (fault, path, document) =>
    error('number_too_small', document.at(path), `must be at least ${String(fault.params['limit'])}`),
  maximum: (fault, path, document) =>
    error('number_too_large', document.at(path), `must be at most ${String(fault.params['limit'])}`),
}

/** Reports a value of the wrong kind; most often an unquoted text that YAML reads as something else. */
function typeIssue(fault: ShapeFault, path: Path, document: SourceDocument): Issue {
  const wanted = list(fault.params['type']).flatMap((type) => type.split(','))
  const spelling = document.spelling(path)
  const at = document.at(path)
  const { data } = fault
  const words = descriptionOf(fault)
  if (data === null && !spelling && path.at(-1) === 'price')
    return error('value_missing', at, priceless(path.at(-2) ?? 'this'))
  if (data === null) {
    const hash = wanted.includes('string') ? ' (a text that starts with # must be quoted)' : ''
    const what =
      spelling === ''
        ? `a value is missing after the colon${hash}`
        : spelling === undefined
          ? 'a key in { } needs a colon and a value'
          : `${spelling} is no value; leave out a key that has none`
    return error('value_missing', at, `${what}${words}`)
  }
  if (wanted.includes('string') && !wanted.includes('number') && spelling !== undefined) {
    const pattern = isJsonObject(fault.parentSchema) ? fault.parentSchema['pattern'] : undefined
    const quotable = typeof pattern !== 'string' || new RegExp(pattern).test(spelling)
    return quotable ? quoteIt(spelling, data, at) : patternIssue(pattern, spelling, at)
  }
  if (wanted.includes('string') && isFlowTemplate(data)) {
    const name = Object.keys(data)[0]
    return error('quote_it', at, `YAML reads {${name}} as a mapping: quote it: "{${name}}"`)
  }
  const instead = example(wanted, data)
  return error('type_wrong', at, `must be ${kinds(wanted)}, not ${kindOf(data)}${instead || words}`)
}

/** The value as it would be written in the expected kind. */
function example(wanted: readonly string[], data: unknown): string {
  const scalar = typeof data === 'string' || typeof data === 'number' ? String(data) : undefined
  if (scalar !== undefined && wanted.includes('array')) return `; write [${scalar}]`
  if (wanted.includes('boolean') && !wanted.includes('string') && typeof data === 'string') {
    if (/^(yes|on|y)$/i.test(data)) return '; write true'
    return /^(no|off|n)$/i.test(data) ? '; write false' : ''
  }
  if (Array.isArray(data) && wanted.includes('string') && data.every((item) => typeof item !== 'object')) {
    const text = data.join(',')
    return wanted.includes('number') && data.length === 1 ? `; write ${text}` : `; write "${text}"`
  }
  if (wanted.join() === 'object' && /^(string|integer|number|boolean)$/.test(scalar ?? '')) {
    return `; write { type: ${scalar} }`
  }
  const numeric = typeof data === 'string' && data !== '' && !Number.isNaN(Number(data))
  return numeric && /number|integer/.test(wanted.join()) ? `; write ${data} without quotes` : ''
}

/** Explains how YAML has read an unquoted text. */
export function quoteIt(spelling: string, value: unknown, position: Position): Issue {
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

function nameIssue(fault: ShapeFault, path: Path, document: SourceDocument): Issue {
  const name = String(fault.propertyName)
  return patternIssue(String(fault.params['pattern']), name, document.atKey([...path, name]))
}

function patternIssue(pattern: string, text: string, at: Position): Issue {
  const form = formOf(pattern)
  if (form === undefined) return error('text_invalid', at, `must match ${pattern}`)
  const proper = isName(form) ? `; write "${properName(text, pattern)}"` : ''
  return error(form.code, at, form.sentence + proper)
}

function isName({ code }: Form): boolean {
  return code === 'name_invalid' || code === 'path_invalid'
}

/** The schema's description of the value, for a reader who does not know it. */
function descriptionOf(fault: ShapeFault, key?: string): string {
  const owner = isJsonObject(fault.parentSchema) ? fault.parentSchema : {}
  const properties = owner['properties']
  const schema = key === undefined ? owner : isJsonObject(properties) ? properties[key] : undefined
  if (!isJsonObject(schema)) return ''
  if (key !== undefined && schema['const'] !== undefined)
    return `: "${key}: ${JSON.stringify(schema['const'])}"`
  if (key !== undefined && Array.isArray(schema['enum'])) return `: ${schema['enum'].join(', ')}`
  const text = schema['description']
  return typeof text === 'string' ? ` — ${text.replace(/\.$/, '')}` : ''
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
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return ARTICLES[typeof value] ?? typeof value
}

/** Writes docs/catalog.md and docs/errors.md from the catalog's schema and the table of errors: `npm run generate`. */
import { writeFileSync } from 'node:fs'
import { catalogSchema } from '../src/engine/catalog/schema.ts'
import { ERRORS } from '../src/engine/base/errors.ts'

/** The keywords of JSON Schema that the catalog uses. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: string | number
  readonly enum?: readonly (string | number)[]
  readonly description?: string
  readonly pattern?: string
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | false
  readonly items?: Schema
}

interface Section {
  readonly path: string
  readonly schema: Schema
}

/** What the keys of a map are called in a path. */
const KEYS: Readonly<Record<string, string>> = {
  routes: '<path>',
  documents: '<name>',
  files: '<path>',
  limits: '<network>',
  with: '<argument>',
  aliases: '<spelling>',
}

/** Sections of a schema, outer ones first; one that several keys share is listed where it is met first. */
function sectionsOf(path: string, schema: Schema, seen: Map<Schema, string>): Section[] {
  if (seen.has(schema)) return []
  seen.set(schema, path)
  const { properties, additionalProperties } = schema
  if (properties !== undefined)
    return [
      { path, schema },
      ...Object.entries(properties).flatMap(([key, member]) =>
        sectionsOf(path === '' ? key : `${path}.${key}`, member, seen),
      ),
    ]
  if (additionalProperties === undefined || additionalProperties === false) return []
  const name = KEYS[path.split('.').at(-1) ?? ''] ?? '<name>'
  return sectionsOf(`${path}.${name}`, additionalProperties, seen)
}

const seen = new Map<Schema, string>()
const sections = sectionsOf('', catalogSchema, seen)

function anchorOf(path: string): string {
  return path.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '')
}

const DURATION = '(ms|s|m|h|d)$'

function typeOf(schema: Schema): string {
  const { type, pattern = '', maxLength, items, maxItems } = schema
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(' or ')
  const types = (typeof type === 'string' ? [type] : (type ?? [])).map((each) => {
    if (each === 'string' && pattern.endsWith(DURATION)) return 'duration'
    if (each === 'string' && pattern.startsWith('^0x')) return 'address'
    if (each === 'string') return maxLength === undefined ? 'text' : `text, at most ${maxLength} characters`
    if (each === 'object') return 'map'
    if (each === 'array')
      return `list of ${items === undefined ? 'values' : typeOf(items)}${maxItems === undefined ? '' : `, at most ${maxItems}`}`
    if (each === 'integer' || each === 'number') return each + rangeOf(schema)
    return each
  })
  return types.join(' or ')
}

function rangeOf({ minimum, maximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`
  if (minimum !== undefined) return `, at least ${minimum}`
  return maximum === undefined ? '' : `, at most ${maximum}`
}

/** Where the keys of a member are listed, when it has keys of its own. */
function linkOf(schema: Schema): string {
  const { additionalProperties } = schema
  const inner =
    schema.properties === undefined && additionalProperties !== undefined && additionalProperties !== false
      ? additionalProperties
      : schema
  const path = inner.properties === undefined ? undefined : seen.get(inner)
  return path === undefined ? '' : ` Keys: [${path}](#${anchorOf(path)}).`
}

function row([key, member]: readonly [string, Schema], required: readonly string[]): string {
  const text = `${member.description ?? ''}${linkOf(member)}`.trim()
  return `| \`${key}\`${required.includes(key) ? ' (required)' : ''} | ${cell(typeOf(member))} | ${cell(text)} |`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/<(\w+)>/g, '\\<$1\\>')
}

function table({ path, schema: { properties = {}, required = [], description } }: Section): string {
  return [
    `## ${path === '' ? 'Top level' : cell(path)}`,
    '',
    ...(path === '' || description === undefined ? [] : [description, '']),
    '| Key | Type | Meaning |',
    '| --- | --- | --- |',
    ...Object.entries(properties).map((entry) => row(entry, required)),
    '',
  ].join('\n')
}

const CATALOG = `# Catalog reference

<!-- Generated from src/engine/catalog/schema.ts by \`npm run generate\`. Do not edit. -->

Every key of \`catalog.yaml\`. Editors complete and check it with the JSON Schema: \`catalog.schema.json\` in the package, https://unpkg.com/ratecard/catalog.schema.json, or \`npx ratecard print schema\`. \`npx ratecard check\` checks what a schema cannot: references, prices, examples and paths. A misspelt key is an error.

Durations are a number and a unit: \`500ms\`, \`20s\`, \`5m\`, \`24h\`, \`30d\`. Prices are in USD whatever token a buyer pays with. Quote addresses, dates and versions.

`

writeFileSync(new URL('catalog.md', import.meta.url), CATALOG + sections.map(table).join('\n'))

const ERRORS_PAGE = `# Errors

<!-- Generated from src/engine/base/errors.ts by \`npm run generate\`. Do not edit. -->

Every error is a problem document (RFC 9457) with a stable \`code\`. \`charged\` says whether money moved for this request: \`no\`, \`yes\` or \`unknown\`. When it is \`unknown\`, do not sign a new payment: send the same one again, or read the address in the \`Location\` header. \`retryable\` says whether the same request may succeed later without a change.

An invalid parameter is answered with 422; \`detail\` lists each parameter with what it should be.

| Status | Code | Meaning | What to do | Retry | Charged |
| --- | --- | --- | --- | --- | --- |
`

const rows = Object.entries(ERRORS)
  .toSorted(([, a], [, b]) => a.status - b.status)
  .map(
    ([code, { status, title, hint, retryable, charged }]) =>
      `| ${status} | \`${code}\` | ${cell(title)} | ${cell(hint)} | ${retryable ? 'yes' : 'no'} | ${charged.join(', ')} |`,
  )
writeFileSync(new URL('errors.md', import.meta.url), `${ERRORS_PAGE}${rows.join('\n')}\n`)

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { once } from '../../base/once.ts'
import {
  type CheckContext,
  type DeclaredEntry,
  entriesOf,
  handlerOf,
  readText,
  routesOf,
} from '../check-context.ts'
import { didYouMean, error, type Issue, type Position, warning, wordIn } from '../issue.ts'
import { referencesIn } from '../route-reference.ts'
import { UNOPTIMIZED } from '../schema-compiler.ts'
import type { Path } from '../yaml-document.ts'

/** Checks that every name that refers to another part of the catalog or to a file has a target. */
export function* checkReferences(context: CheckContext): Generator<Issue> {
  yield* together([...checkEntries(context), ...checkRouteNames(context), ...checkToolNames(context)])
  yield* checkSkills(context)
  yield* checkPlanned(context)
  yield* checkIdentities(context)
}

/** A name that is misspelt at its declaration is unknown wherever it is used: reported once, with every line. */
function together(issues: readonly Issue[]): Issue[] {
  const groups = new Map<string, Issue[]>()
  for (const issue of issues) groups.set(issue.message, [...(groups.get(issue.message) ?? []), issue])
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined || others.length === 0) return first ?? []
    const lines = others.map(({ position }) => position.line).join(', ')
    return { ...first, message: `${first.message} (also on line ${lines})` }
  })
}

function* checkEntries(context: CheckContext): Generator<Issue> {
  const { categories, sources = {} } = context.declared
  for (const declared of entriesOf(context.declared)) {
    const { entry, at } = declared
    yield* checkName(context, 'category', entry.category, [...at, 'category'], categories)
    for (const [index, name] of (entry.sources ?? []).entries())
      yield* checkName(context, 'source', name, [...at, 'sources', index], sources)
    yield* checkNamedRoutes(context, declared)
    yield* checkAnswer(context, declared)
  }
}

/** Checks that every `{route: …}` in a text names a route. */
function* checkNamedRoutes(
  { declared, document }: CheckContext,
  { entry, at }: DeclaredEntry,
): Generator<Issue> {
  for (const name of ['use_when', 'description'] as const) {
    const named = referencesIn(entry[name] ?? '')
    if (named.length === 0) continue
    const known = Object.keys(declared.routes).map((key) => key.replace(/^GET /, ''))
    for (const key of named) {
      if (known.includes(key)) continue
      const position = wordIn(document.at([...at, name]), entry[name] ?? '', key)
      yield error('route_unknown', position, `there is no route "${key}"${didYouMean(key, known)}`)
    }
  }
}

const SECTIONS = { category: 'categories', source: 'sources' } as const

function* checkName(
  { document }: CheckContext,
  what: 'category' | 'source',
  name: string | undefined,
  at: Path,
  known: Readonly<Record<string, unknown>> | undefined,
): Generator<Issue> {
  if (name === undefined || known === undefined || Object.hasOwn(known, name)) return
  // Declared, but with an error of its own.
  if (document.has([SECTIONS[what], name])) return
  const hint = didYouMean(name, Object.keys(known)) || `; declare it under ${SECTIONS[what]}`
  yield error(`${what}_unknown`, document.at(at), `there is no ${what} "${name}"${hint}`)
}

/** Checks that the example and the schema of the answer are readable and that the example fits the schema. */
function* checkAnswer(context: CheckContext, { entry, at }: DeclaredEntry): Generator<Issue> {
  yield* checkExample(context, {
    of: 'response',
    example: entry.example,
    exampleAt: [...at, 'example'],
    schema: entry.response?.schema,
    schemaAt: [...at, 'response', 'schema'],
  })
}

interface Exemplified {
  readonly of: 'response' | 'body'
  readonly example: unknown
  readonly exampleAt: Path
  readonly schema: unknown
  readonly schemaAt: Path
}

/** Checks that both are readable, the schema compiles, and the example fits it. */
export function* checkExample(
  context: CheckContext,
  { of, schemaAt, exampleAt, ...declared }: Exemplified,
): Generator<Issue> {
  const example = yield* readJson(context, 'example', declared.example, exampleAt)
  const schema = yield* readJson(context, 'schema', declared.schema, schemaAt)
  if (schema === undefined) return
  const { document } = context
  if (!isJsonObject(schema)) {
    yield error('schema_invalid', document.at(schemaAt), 'a schema is an object')
    return
  }
  const validate = compileSchema(schema)
  if (typeof validate === 'string') yield error('schema_invalid', document.at(schemaAt), validate)
  else if (example !== undefined && !validate(example)) {
    const { instancePath = '', message = 'it does not' } = validate.errors?.[0] ?? {}
    const where = instancePath === '' ? '' : `${instancePath} `
    const said = `does not fit the schema of the ${of}: ${where}${message}`
    yield error('example_unfit', document.at(exampleAt), said)
  }
}

/** Inline JSON or the content of a file; undefined when there is none or an issue was reported. */
function* readJson(
  context: CheckContext,
  what: 'example' | 'schema',
  declared: unknown,
  at: Path,
): Generator<Issue, unknown> {
  if (typeof declared !== 'string') return declared
  const position = context.document.at(at)
  if (!declared.startsWith('./')) {
    const article = what === 'example' ? 'an' : 'a'
    yield error(
      'file_path_invalid',
      position,
      `${article} ${what} is inline JSON, or a file: ./folder/file.json`,
    )
    return undefined
  }
  const text = readText(context, declared)
  if (text === undefined) {
    const message = `${declared} cannot be read; files are named from the catalog’s folder`
    yield error(`${what}_unreadable`, position, message)
    return undefined
  }
  try {
    return JSON.parse(text)
  } catch (fault) {
    yield error(`${what}_not_json`, position, `${declared} is not JSON: ${jsonFault(fault, text)}`)
    return undefined
  }
}

/** The message of the parser on one line, with a line number instead of an offset. */
function jsonFault(fault: unknown, text: string): string {
  const said = fault instanceof Error ? fault.message.replaceAll(/\s+/g, ' ') : ''
  return said.replace(
    / in JSON at position (\d+).*/,
    (_, offset: string) => `, line ${text.slice(0, Number(offset)).split('\n').length}`,
  )
}

/** One instance for all schemas: each compiler compiles the meta-schema again, which costs more than most schemas. */
const compiler = once(() => new Ajv2020({ strict: false, validateFormats: false, code: UNOPTIMIZED }))

/** The validator of a schema, or why it is invalid. */
function compileSchema(schema: JsonObject): ValidateFunction | string {
  try {
    return compiler().compile(schema)
  } catch (fault) {
    const [first = ''] = String(fault instanceof Error ? fault.message : fault).split(', ')
    return first
  } finally {
    // Otherwise it would stay in memory after a reload, and its $id would be taken.
    compiler().removeSchema(schema)
  }
}

interface NamedTool {
  readonly server: string
  readonly tool: string
  readonly serverAt: Position
  readonly nameAt: Position
}

function namedTools({ declared, document }: CheckContext): NamedTool[] {
  const routes = routesOf(declared).flatMap(({ route, at }): NamedTool[] => {
    if (route.tool === undefined) return []
    const [server = '', tool = ''] = route.tool.split('.')
    const position = document.at([...at, 'tool'])
    return [{ server, tool, serverAt: position, nameAt: position }]
  })
  const tools = Object.entries(declared.tools ?? {}).flatMap(([tool, { server }]): NamedTool[] => {
    const at = ['tools', tool]
    if (!document.has([...at, 'server'])) return []
    return [{ server, tool, serverAt: document.at([...at, 'server']), nameAt: document.atKey(at) }]
  })
  return [...routes, ...tools]
}

/** Checks that no two routes have the same name. */
function* checkRouteNames({ declared, document }: CheckContext): Generator<Issue> {
  const taken = new Map<string, number>()
  for (const { route, at } of routesOf(declared)) {
    if (route.name === undefined) continue
    const position = document.at([...at, 'name'])
    const line = taken.get(route.name)
    taken.set(route.name, position.line)
    const message = `${route.name} is the name of the route on line ${line}; give one another name`
    if (line !== undefined) yield error('name_repeated', position, message)
  }
}

/** Checks that a tool has a unique name, on an existing server. */
function* checkToolNames(context: CheckContext): Generator<Issue> {
  const servers = context.declared.mcp_servers ?? {}
  const taken = new Map<string, number>()
  for (const { server, tool, serverAt, nameAt } of namedTools(context)) {
    if (Object.hasOwn(servers, server)) {
      const line = taken.get(`${server}.${tool}`)
      taken.set(`${server}.${tool}`, nameAt.line)
      const message = `${server}.${tool} is named already on line ${line}; give one another name`
      if (line !== undefined) yield error('tool_repeated', nameAt, message)
    } else if (!context.document.has(['mcp_servers', server])) {
      const hint = didYouMean(server, Object.keys(servers)) || '; declare it there'
      yield error('server_unknown', serverAt, `there is no server "${server}" under mcp_servers${hint}`)
    }
  }
}

function* checkSkills({ declared, document }: CheckContext): Generator<Issue> {
  const taken = new Map<string, number>()
  for (const { entry, at } of entriesOf(declared)) {
    const { skill } = entry
    if (skill === undefined) continue
    const position = document.at([...at, 'skill'])
    const line = taken.get(skill)
    taken.set(skill, position.line)
    if (line !== undefined) {
      const message = `the skill "${skill}" is already on line ${line}; give one another name`
      yield error('skill_repeated', position, message)
    }
  }
}

function* checkPlanned({ declared, document, handlers }: CheckContext): Generator<Issue> {
  for (const place of routesOf(declared)) {
    const handler = handlerOf(place)
    if (place.route.planned !== true || handlers?.includes(handler) !== true) continue
    const message = `the handler ${handler} exists: remove "planned" to sell ${place.path}`
    yield warning('planned_but_written', document.at([...place.at, 'planned']), message)
  }
}

/** Only a paid tool can require a payer, and only what is free a signer. */
function* checkIdentities({ declared, document }: CheckContext): Generator<Issue> {
  for (const { entry, at } of entriesOf(declared)) {
    const [section, name = ''] = at
    const written = [...at, 'price']
    const price = document.spelling(written)
    const position = document.at([...at, 'requires'])
    if (entry.requires === 'payer' && price === 'free') {
      const message = `nobody pays for ${name}, so no payer is known: give it a price, or write "requires: signer"`
      yield error('payer_without_price', position, message)
    }
    if (entry.requires === 'signer' && document.has(written) && price !== 'free') {
      const other = section === 'tools' ? 'write "requires: payer", or "price: free"' : 'write "price: free"'
      const message = `${name} is paid for, and the payment identifies its signer: ${other}`
      yield error('signer_with_price', position, message)
    }
    if (entry.requires === 'signer' && document.has([...at, 'cache'])) {
      const message = `an answer of ${name} is for one signer and is not kept for others: remove "cache"`
      yield error('signer_with_cache', document.atKey([...at, 'cache']), message)
    }
  }
}

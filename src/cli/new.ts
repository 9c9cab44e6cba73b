import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Catalog, type Method, METHODS, routeKey, type Route } from '../engine/catalog/catalog.ts'
import { operationId } from '../engine/catalog/check-context.ts'
import { generateTypes } from '../engine/catalog/generate-types.ts'
import { CatalogError } from '../engine/catalog/issue.ts'
import { compileText, type Loaded, readerIn } from '../engine/catalog/load-catalog.ts'
import { documentNames } from '../engine/documents/all.ts'
import type { Json, JsonObject } from '../engine/base/json.ts'
import type { Call } from './command.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { handlersFor } from './load-handlers.ts'
import { replaceFile, taken, writeFiles } from './new-files.ts'
import {
  EMPTY_INDEX,
  handlerFile,
  handlerText,
  moduleOf,
  type Stub,
  testFile,
  testText,
  withHandler,
} from './new/handler-stub.ts'
import { insertRoute } from './new/insertion.ts'
import type { Draft } from './route-yaml.ts'

export async function addRoute(call: Call): Promise<number> {
  const { flags, env, terminal } = call
  const draft = draftOf(call)
  const file = flags.text('catalog') ?? env.catalog
  const folder = flags.text('handlers') ?? join(dirname(file), 'handlers')
  if (!existsSync(file))
    return refuse(call, `${file} does not exist: --catalog names another, "ratecard init" creates one`)
  const insertion = insertRoute(readFileSync(file, 'utf8'), draft)
  if (insertion.kind === 'fault') return refuse(call, `${file} ${insertion.sentence}`)
  try {
    const place = { file, folder, text: insertion.text, line: insertion.line }
    const { catalog } = await judge(call, place, draft)
    const fault = add(call, place, catalog, routeAt(catalog, draft.path))
    return fault === undefined ? 0 : refuse(call, fault)
  } catch (fault) {
    if (!(fault instanceof CatalogError)) throw fault
    terminal.err(fault.message)
    return refuse(call, `${file} would not pass with this route`)
  }
}

function refuse({ terminal }: Call, reason: string): number {
  terminal.err(`ratecard new: nothing was written: ${reason}`)
  return 1
}

function draftOf({ positionals, flags }: Call): NewRoute {
  const [path] = positionals
  if (path === undefined || !path.startsWith('/'))
    throw new UsageError('missing argument: a path such as /paid/util/slug')
  const word = (flags.text('method') ?? 'GET').toUpperCase()
  const method = METHODS.find((each) => each === word)
  if (method === undefined) throw new UsageError(`--method takes one of ${METHODS.join(', ')}; not "${word}"`)
  const price = flags.text('price')
  if (price === undefined || !/^(?:free|[\d.]+)$/.test(price))
    throw new UsageError('--price takes USD for one call, such as 0.005, or the word free')
  const given = flags.all('parameter').map(parseParameter)
  const inPath = [...path.matchAll(/\{([^{}/]*)\}/g)].map(([, name = '']) => name)
  const silent = inPath
    .filter((name) => !given.some((each) => each.name === name))
    .map((name) => ({ name, type: 'string', preset: undefined, required: true }) as const)
  const declared = [...silent, ...given].map((each) => {
    const place = inPath.includes(each.name) ? 'path' : 'query'
    return { place, entry: [each.name, declare(each, place)] as const }
  })
  const entriesIn = (place: 'path' | 'query') =>
    declared.flatMap((each) => (each.place === place ? [each.entry] : []))
  const sent = entriesIn('query')
  const hasBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
  return {
    path: method === 'GET' ? path : `${method} ${path}`,
    price,
    keys: [
      ['summary', flags.text('summary') ?? `What one call of ${path} brings`],
      ...(operationId({ method, path }) === '' ? [['handler', handlerOf(method, path)] as const] : []),
    ],
    parameters: hasBody ? entriesIn('path') : declared.map(({ entry }) => entry),
    ...(hasBody ? { body: { properties: sent.length === 0 ? [TEXT] : sent } } : {}),
    handler: handlerOf(method, path),
  }
}

/** Type of a body until the operator edits it. */
const TEXT = ['text', { type: 'string', required: true, example: 'example' }] as const

interface NewRoute extends Draft {
  readonly handler: string
}

/** The result of adding a route: the new catalog, and the folder of handlers. */
interface Place {
  readonly file: string
  readonly folder: string
  readonly text: string
  /** Line of the route. */
  readonly line: number
}

/** Checks the catalog as it would be against the handlers that there would be. Throws `CatalogError`. */
async function judge(call: Call, { file, folder, text }: Place, draft: NewRoute): Promise<Loaded> {
  const read = readerIn(dirname(file))
  // Which handlers there are is known when they are compiled.
  if (existsSync(join(folder, 'index.ts')))
    return compileText(file, text, { documents: documentNames, handlers: undefined, read })
  const isThere = existsSync(resolve(folder, 'index.js'))
  const flags = {
    ...call.flags,
    text: (name: string) => (name === 'handlers' && isThere ? folder : undefined),
  }
  const own = Object.keys(await handlersFor({ ...call, flags }, file))
  const handlers = [...own, draft.handler]
  return compileText(file, text, { documents: documentNames, handlers, read })
}

/** The name of a handler is the path after its first segment; a path with one segment is named by that segment. */
function handlerOf(method: Method, path: string): string {
  return operationId({ method, path }) || operationId({ method, path: `/free${path}` })
}

function routeAt({ routes }: Catalog, key: string): Route {
  const route = routes.find((each) => routeKey(each) === key)
  if (route === undefined) throw new Error(`${key} is not in the catalog it was written into`)
  return route
}

/** Why nothing was written; undefined when everything was. */
function add(
  { terminal, flags }: Call,
  { file, folder, text, line }: Place,
  catalog: Catalog,
  route: Route,
): string | undefined {
  const { handler, parameters } = route.operation
  const ending = existsSync(join(folder, 'index.ts')) ? 'ts' : 'js'
  const stub: Stub = { handler, parameters, path: routeKey(route), ending }
  const index = join(folder, `index.${ending}`)
  const types = join(folder, ending === 'ts' ? 'catalog.ts' : 'catalog.d.ts')
  const made = [join(folder, handlerFile(stub)), testFile(folder, stub)] as const
  const list = withHandler(existsSync(index) ? readFileSync(index, 'utf8') : EMPTY_INDEX, stub)
  if (list === undefined)
    return `${index} has no "export const handlers = {" with a line for each handler, and "}" on its own`
  const files = new Map([
    [made[0], handlerText(stub)],
    [made[1], testText(stub, moduleOf(made[1], made[0]))],
  ])
  const there = taken('.', files)
  if (there.length > 0) return `${there.join(' and ')} ${there.length > 1 ? 'are' : 'is'} there already`
  writeFiles('.', files)
  const known = existsSync(index)
  replaceFile(index, list)
  if (!known || existsSync(types)) replaceFile(types, generateTypes(catalog, 'ratecard/handler'))
  replaceFile(file, text)
  if (flags.given('json')) {
    terminal.out(JSON.stringify({ wrote: [...files.keys()], changed: [file, index], line }, undefined, 2))
    return undefined
  }
  for (const each of files.keys()) terminal.out(`wrote ${each}`)
  terminal.out(`changed ${file}:${line}, ${index}`)
  terminal.out(
    `\n${ending === 'ts' ? 'compile it with "npm run build"; ' : ''}a running server shows the route as planned until it is restarted; "ratecard serve --watch" loads the handler automatically`,
  )
  return undefined
}

/** A parameter as it is given on a command line: `text:string!`, `limit:integer=10`, `country:string`. */
export interface GivenParameter {
  readonly name: string
  readonly type: keyof typeof EXAMPLES
  /** Default as written; undefined: none. */
  readonly preset: string | undefined
  readonly required: boolean
}

/** Example of a required parameter until the operator edits it. */
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

/** The declaration in a catalog. A path parameter is always given, so its default becomes an example. */
export function declare({ type, preset, required }: GivenParameter, place: 'path' | 'query'): JsonObject {
  const value = preset === undefined ? undefined : readValue(type, preset)
  if (place === 'path') return { type, example: value ?? EXAMPLES[type] }
  if (required) return { type, required: true, example: EXAMPLES[type] }
  return value === undefined ? { type } : { type, default: value }
}

/** A value that does not fit stays a text, which the check of the catalog reports. */
function readValue(type: GivenParameter['type'], text: string): Json {
  if (type === 'boolean' && /^(?:true|false)$/.test(text)) return text === 'true'
  const isNumber = (type === 'integer' || type === 'number') && /^-?\d+(?:\.\d+)?$/.test(text)
  return isNumber ? Number(text) : text
}

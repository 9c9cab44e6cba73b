import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import {
  type Catalog,
  CatalogError,
  compileText,
  documentNames,
  generateTypes,
  type Json,
  type JsonObject,
  type Loaded,
  operationId,
  type Route,
} from '../engine/internal.ts'
import { type Call, UsageError } from './command.ts'
import { handlersFor } from './load.ts'
import { replaceFile, taken, writeFiles } from './new-files.ts'
import {
  EMPTY_INDEX,
  handlerFile,
  handlerText,
  moduleOf,
  testFile,
  testText,
  withHandler,
} from './new/handler.ts'
import { insertRoute } from './new/insertion.ts'
import type { Draft } from './route-yaml.ts'

/** Reads what a catalog names by a path from its own folder; undefined when it is not there. */
function beside(catalog: string): (path: string) => Buffer | undefined {
  const folder = dirname(resolve(catalog))
  return (path) => {
    try {
      return readFileSync(resolve(folder, path))
    } catch {
      return undefined
    }
  }
}

export async function addRoute(call: Call): Promise<number> {
  const { flags, env, terminal } = call
  const draft = draftOf(call)
  const file = flags.text('catalog') ?? env.catalog
  const folder = flags.text('handlers') ?? join(dirname(file), 'handlers')
  if (existsSync(join(folder, 'index.ts')))
    return refuse(call, `${join(folder, 'index.ts')} is TypeScript: add the route and its handler by hand`)
  const insertion = insertRoute(readFileSync(file, 'utf8'), draft)
  if (insertion.kind === 'fault') return refuse(call, `${file} ${insertion.sentence}`)
  try {
    const { text, line } = insertion
    const { catalog } = await judge(call, { file, folder, text, draft })
    const fault = add(call, { file, folder, text, line, catalog, route: routeAt(catalog, draft.path) })
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

function draftOf({ positionals, flags }: Call): Draft {
  const [path] = positionals
  if (path === undefined || !path.startsWith('/'))
    throw new UsageError('missing argument: a path such as /paid/util/slug')
  const price = flags.text('price')
  if (price === undefined || !/^(?:free|[\d.]+)$/.test(price))
    throw new UsageError('--price takes USD for one call, such as 0.005, or the word free')
  const given = flags.all('parameter').map(parseParameter)
  const inPath = [...path.matchAll(/\{([^{}/]*)\}/g)].map(([, name = '']) => name)
  const silent = inPath
    .filter((name) => !given.some((each) => each.name === name))
    .map((name) => ({ name, type: 'string', preset: undefined, required: true }) as const)
  return {
    path,
    price,
    keys: [
      ['summary', flags.text('summary') ?? `What one call of ${path} brings`],
      ...(operationId({ method: 'GET', path }) === '' ? [['handler', handlerOf(path)] as const] : []),
    ],
    parameters: [...silent, ...given].map(
      (each) => [each.name, declare(each, inPath.includes(each.name) ? 'path' : 'query')] as const,
    ),
  }
}

interface Judged {
  readonly file: string
  readonly folder: string
  readonly text: string
  readonly draft: Draft
}

/** The catalog as it would be, held against the handlers there would be. Throws `CatalogError`. */
async function judge(call: Call, { file, folder, text, draft }: Judged): Promise<Loaded> {
  const isThere = existsSync(resolve(folder, 'index.js'))
  const flags = {
    ...call.flags,
    text: (name: string) => (name === 'handlers' && isThere ? folder : undefined),
  }
  const own = Object.keys(await handlersFor({ ...call, flags }, file))
  const handlers = [...own, handlerOf(draft.path)]
  return compileText(file, text, { documents: documentNames, handlers, read: beside(file) })
}

/** What a path names by itself begins behind its first segment; one that has no more is named by that. */
function handlerOf(path: string): string {
  const method = 'GET'
  return operationId({ method, path }) || operationId({ method, path: `/free${path}` })
}

function routeAt({ routes }: Catalog, path: string): Route {
  const route = routes.find((each) => each.path === path)
  if (route === undefined) throw new Error(`${path} is not in the catalog it was written into`)
  return route
}

interface Addition {
  readonly file: string
  readonly folder: string
  readonly text: string
  readonly line: number
  readonly catalog: Catalog
  readonly route: Route
}

/** Why nothing was written; undefined when everything was. */
function add({ terminal }: Call, { file, folder, text, line, catalog, route }: Addition): string | undefined {
  const { handler, parameters } = route.operation
  const stub = { handler, parameters, path: route.path }
  const [index, types] = [join(folder, 'index.js'), join(folder, 'catalog.d.ts')]
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
  for (const each of files.keys()) terminal.out(`wrote ${each}`)
  terminal.out(`changed ${file}:${line}, ${index}`)
  terminal.out('\na running server loads the entry by itself, and the handler after a restart')
  return undefined
}

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

import { parseDuration } from '../base/duration.ts'
import { digestJson, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { compileBody, compileResponse } from './body.ts'
import { bind, compileSet, ownDeclaration, type Owner } from './arguments.ts'
import type {
  Binding,
  Cache,
  Credential,
  Method,
  Operation,
  Parameter,
  Route,
  RouteKind,
  Tool,
  Upstream,
} from './catalog.ts'
import { bindAlike, compilePrice, priceInputs } from './compile-price.ts'
import type { DeclaredRoute, DeclaredTool } from './schema.ts'
import type { SourceDocument } from './yaml-document.ts'
import { type DeclaredPlace, handlerOf, operationId, samplePath } from './check-context.ts'

/** Assigns unique names: the first free candidate, otherwise the last candidate with a number. */
export type Namer = (...wishes: readonly [string, ...string[]]) => string

/**
 * A namer that has given nothing yet. Things are named in the order of the file, so an entry that is added below
 * never renames one above it.
 *
 * @example
 * const name = namer()
 * name('paid_a_b') // 'paid_a_b'
 * name('paid_a_b') // 'paid_a_b_2'
 */
export function namer(): Namer {
  const taken = new Set<string>()
  return (...wishes) => {
    const last = wishes.at(-1) ?? wishes[0]
    let name = wishes.find((wish) => !taken.has(wish)) ?? last
    for (let number = 2; taken.has(name); number += 1) name = `${last}_${number}`
    taken.add(name)
    return name
  }
}

/** What a route needs from the rest of the catalog. */
export interface Compiler {
  readonly owners: ReadonlyMap<string, Owner>
  readonly document: SourceDocument
  readonly json: (value: unknown) => Json | undefined
  /** Ids of operations: payments are bound to them, so each is unique. */
  readonly id: Namer
  /** Names of routes. */
  readonly name: Namer
  /** Whether a handler of this name is loaded; an operation without one is planned. */
  readonly isLoaded: (handler: string) => boolean
}

export interface CompiledRoute {
  readonly operation: Operation
  /** The route, then its sample. */
  readonly routes: readonly Route[]
}

export function compileRoute(place: DeclaredPlace, compiler: Compiler): CompiledRoute {
  const { method, path, route, at } = place
  const handler = handlerOf(place)
  const own = compileSet(path, route.parameters, route.body)
  const owner = compiler.owners.get(handler) ?? ownDeclaration(place)
  const { bindings } = bind(owner, own, route.with)
  const body = compileBody(route.body, compiler.json)
  const operation: Operation = {
    id: compiler.id(operationId(place) || 'root', fullId(place)),
    handler,
    method,
    price: compilePrice(compiler.document, [...at, 'price'], route.price, priceInputs(own, body, bindings)),
    title: route.title,
    summary: route.summary,
    useWhen: route.use_when,
    queries: route.queries ?? [],
    description: route.description,
    deprecated: route.deprecated === true,
    category: route.category,
    cache: compileCache(route.cache),
    timeout: parseDuration(route.timeout ?? '20s') ?? 0,
    settle: route.settle ?? (method === 'GET' || method === 'POST' ? 'after' : 'upfront'),
    parameters: owner.parameters,
    body,
    response: compileResponse(route.response),
    sources: route.sources ?? [],
    ...exampleOf(route.example, compiler),
    responseSchema: schemaOf(route.response, compiler),
    upstream: compileUpstream(route),
    skill: route.skill,
    tool: compileToolName(route.tool),
    planned: route.planned === true || !compiler.isLoaded(handler),
  }
  const previewPath = samplePath(place)
  const name = compiler.name(nameOf(method, path))
  const paid = endpoint(name, operation, path, route.summary, own, bindings, { sample: previewPath })
  if (previewPath === undefined) return { operation, routes: [paid] }
  const sample = typeof route.sample === 'object' ? route.sample : {}
  const shown = compileSet(previewPath, sample.parameters ?? route.parameters, route.body)
  const given = sample.with ?? (sample.parameters === undefined ? route.with : undefined)
  const summary = sample.summary ?? `Free preview: ${route.summary}`
  const previewName = compiler.name(nameOf(method, previewPath))
  const preview = endpoint(
    previewName,
    operation,
    previewPath,
    summary,
    shown,
    bind(owner, shown, given).bindings,
    {
      full: path,
    },
  )
  return { operation, routes: [paid, preview] }
}

function endpoint(
  name: string,
  operation: Operation,
  path: string,
  summary: string,
  parameters: readonly Parameter[],
  bindings: readonly Binding[],
  counterparts: { readonly sample?: string | undefined; readonly full?: string },
): Route {
  return {
    name,
    kind: kindOf(path),
    path,
    operation,
    summary,
    parameters,
    bindings,
    sample: counterparts.sample,
    full: counterparts.full,
  }
}

/** `/paid/app/{appid}` → `app/appid`: for a path whose short id is taken, for example by `/paid/app`. */
function fullId({ method, path }: DeclaredPlace): string {
  const segments = path.replace(/[{}]/g, '').split('/').slice(2)
  return [...(method === 'GET' ? [] : [method.toLowerCase()]), ...segments].join('/') || 'root'
}

function kindOf(path: string): RouteKind {
  if (path.startsWith('/paid/')) return 'paid'
  return path.startsWith('/sample/') ? 'sample' : 'free'
}

/** `/paid/gamestore/app/{appid}` → `paid_gamestore_app_appid`, `POST /paid/translate` → `post_paid_translate`. */
export function nameOf(method: Method, path: string): string {
  const prefix = method === 'GET' ? '' : `/${method.toLowerCase()}`
  return `${prefix}${path}`
    .slice(1)
    .replace(/[{}]/g, '')
    .replace(/[^A-Za-z0-9-]+/g, '_')
}

export function compileTool(name: string, tool: DeclaredTool, compiler: Compiler): Operation {
  const parameters = compileSet('', tool.parameters)
  return {
    id: compiler.id(name),
    handler: tool.handler ?? name,
    method: 'GET',
    price: compilePrice(compiler.document, ['tools', name, 'price'], tool.price, {
      parameters,
      body: undefined,
      bindings: bindAlike(parameters),
    }),
    title: tool.title,
    summary: tool.summary,
    useWhen: tool.use_when,
    queries: tool.queries ?? [],
    description: tool.description,
    deprecated: tool.deprecated === true,
    category: tool.category,
    cache: undefined,
    timeout: parseDuration(tool.timeout ?? '20s') ?? 0,
    settle: tool.settle ?? 'after',
    parameters,
    body: undefined,
    response: compileResponse(tool.response),
    sources: tool.sources ?? [],
    ...exampleOf(tool.example, compiler),
    responseSchema: schemaOf(tool.response, compiler),
    upstream: undefined,
    skill: tool.skill,
    tool: compileToolFace(tool.server, name, tool),
    planned: tool.planned === true || !compiler.isLoaded(tool.handler ?? name),
  }
}

function exampleOf(declared: unknown, compiler: Compiler): Pick<Operation, 'example' | 'form'> {
  const example = compiler.json(declared)
  return { example, form: digestJson(example ?? null).slice(0, 8) }
}

function schemaOf(response: DeclaredRoute['response'], compiler: Compiler): JsonObject | undefined {
  const schema = compiler.json(response?.schema)
  return isJsonObject(schema) ? schema : undefined
}

function compileToolName(text: DeclaredRoute['tool']): Tool | undefined {
  const [server = '', name = ''] = text?.split('.') ?? []
  return text === undefined ? undefined : compileToolFace(server, name, {})
}

function compileToolFace(
  server: string,
  name: string,
  { requires, annotations = {} }: Pick<DeclaredTool, 'requires' | 'annotations'>,
): Tool {
  const { read_only: readOnly, destructive, idempotent, open_world: openWorld } = annotations
  return { server, name, requires, annotations: { readOnly, destructive, idempotent, openWorld } }
}

/** A stale answer is kept for twelve times its ttl, at most two hours, in case the source fails. */
const STALE_FACTOR = 12
const STALE_LIMIT = 7_200_000

function compileCache(cache: DeclaredRoute['cache']): Cache | undefined {
  if (cache === undefined) return undefined
  const ttl = parseDuration(typeof cache === 'string' ? cache : cache.ttl) ?? 0
  const stale = typeof cache === 'string' ? undefined : cache.stale_if_error
  return { ttl, staleIfError: parseDuration(stale ?? '') ?? Math.min(ttl * STALE_FACTOR, STALE_LIMIT) }
}

function compileUpstream(route: DeclaredRoute): Upstream | undefined {
  const { upstream: url, upstream_headers: headers = {}, credential } = route
  return url === undefined ? undefined : { url, headers, credential: compileCredential(credential) }
}

function compileCredential(declared: DeclaredRoute['credential']): Credential | undefined {
  if (declared === undefined) return undefined
  if (typeof declared === 'string') return { kind: 'bearer', token: declared }
  const { bearer, header, query, basic } = declared
  if (bearer !== undefined) return { kind: 'bearer', token: bearer }
  if (header !== undefined) return { kind: 'header', values: header }
  if (query !== undefined) return { kind: 'query', values: query }
  return basic === undefined ? undefined : { kind: 'basic', user: basic.user, password: basic.password }
}

import { withoutPaid } from './route-path.ts'
import { parseDuration } from '../base/duration.ts'
import { compileBody } from './body.ts'
import { bind, compileSet, ownDeclaration } from './arguments.ts'
import type { Cache, Credential, Method, Operation, Route, Tool, Upstream } from './catalog.ts'
import { type Compiler, compileOperation } from './compile-operation.ts'
import { bindAlike, priceInputs } from './price/compile-price.ts'
import type { DeclaredRoute, DeclaredTool } from './schema.ts'
import { type DeclaredPlace, handlerOf, operationId, samplePath } from './check-context.ts'

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
  const operation = compileOperation(
    route,
    {
      id: [operationId(place) || 'root', fullId(place)],
      at,
      handler,
      method,
      settle: method === 'GET' || method === 'POST' ? 'after' : 'upfront',
      arguments: owner.parameters,
      inputs: priceInputs(own, body, bindings),
      cache: compileCache(route.cache),
      upstream: compileUpstream(route),
      tool: compileToolName(route),
    },
    compiler,
  )
  const previewPath = samplePath(place)
  const name = route.name ?? compiler.name(nameOf(method, path))
  const kind = operation.price === undefined ? 'free' : 'paid'
  const main: Route = {
    name,
    kind,
    path,
    operation,
    summary: route.summary,
    parameters: own,
    bindings,
    requires: route.requires,
    sample: previewPath,
    full: undefined,
  }
  if (previewPath === undefined) return { operation, routes: [main] }
  const sample = typeof route.sample === 'object' ? route.sample : {}
  const shown = compileSet(previewPath, sample.parameters ?? route.parameters, route.body)
  const given = sample.with ?? (sample.parameters === undefined ? route.with : undefined)
  const preview: Route = {
    name: compiler.name(nameOf(method, previewPath)),
    kind: 'sample',
    path: previewPath,
    operation,
    summary: sample.summary ?? `Free preview: ${route.summary}`,
    parameters: shown,
    bindings: bind(owner, shown, given).bindings,
    requires: undefined,
    sample: undefined,
    full: path,
  }
  return { operation, routes: [main, preview] }
}

/** `/paid/app/{appid}` → `app/appid`: for a path whose short id is taken, for example by `/paid/app`. */
function fullId({ method, path }: DeclaredPlace): string {
  const segments = withoutPaid(path).replace(/[{}]/g, '').split('/').slice(1)
  return [...(method === 'GET' ? [] : [method.toLowerCase()]), ...segments].join('/') || 'root'
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
  return compileOperation(
    tool,
    {
      id: [name],
      at: ['tools', name],
      handler: tool.handler ?? name,
      method: 'GET',
      settle: 'after',
      arguments: parameters,
      inputs: priceInputs(parameters, undefined, bindAlike(parameters)),
      cache: undefined,
      upstream: undefined,
      tool: compileToolFace(tool.server, name, tool),
    },
    compiler,
  )
}

function compileToolName({ tool, requires }: DeclaredRoute): Tool | undefined {
  const [server = '', name = ''] = tool?.split('.') ?? []
  return tool === undefined ? undefined : compileToolFace(server, name, { requires })
}

function compileToolFace(
  server: string,
  name: string,
  { requires, annotations = {} }: Pick<DeclaredTool, 'annotations'> & Partial<Pick<Tool, 'requires'>>,
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

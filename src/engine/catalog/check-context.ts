import { usualSamplePath, withoutPaid } from './route-path.ts'
import { type Method, METHODS } from './catalog.ts'
import type { Declared, DeclaredRoute, DeclaredTool } from './schema.ts'
import type { Path, SourceDocument } from './yaml-document.ts'

/** What a catalog is checked against in addition to its own text. */
export interface CheckInputs {
  /** Names of the existing handlers; undefined when they are not known. */
  readonly handlers: readonly string[] | undefined
  /**
   * Keys of the routes and names of the tools that are served now: they must keep their handlers, and a new one is
   * planned until its handler is loaded. Undefined: every entry needs its handler.
   */
  readonly served?: readonly string[] | undefined
  /** Names of the documents the engine can render. */
  readonly documents: readonly string[]
  /** Reads a file next to the catalog; undefined when there is none. */
  readonly read: (path: string) => Buffer | undefined
}

/** The catalog as the rules see it. */
export interface CheckContext extends CheckInputs {
  readonly declared: Declared
  readonly document: SourceDocument
}

/** A file next to the catalog that holds text. */
export function readText({ read }: Pick<CheckInputs, 'read'>, path: string): string | undefined {
  const bytes = read(path)
  return bytes === undefined ? undefined : withoutMark(bytes.toString('utf8'))
}

/** Removes the byte order mark that some editors write, which would count as a column. */
export function withoutMark(text: string): string {
  return text.replace(/^\ufeff/, '')
}

/** One line of a list next to the catalog. */
interface ListedLine {
  readonly number: number
  readonly word: string
}

/** A line of a list, where # starts a comment. */
export function withoutComment(line: string): string {
  return line.replace(/#.*/, '').trim()
}

/** The lines of a list, without comments and empty lines; undefined when the file cannot be read. */
export function linesOf(context: CheckContext, path: string): ListedLine[] | undefined {
  return readText(context, path)
    ?.split('\n')
    .map((line, index) => ({ number: index + 1, word: withoutComment(line) }))
    .filter(({ word }) => word !== '')
}

interface DeniedFile {
  readonly path: string
  readonly at: Path
  /** Undefined when the file cannot be read. */
  readonly lines: readonly ListedLine[] | undefined
}

/** The files of denied payer addresses. */
export function deniedFiles(context: CheckContext): DeniedFile[] {
  const at = ['payments', 'payers', 'deny']
  const deny = context.declared.payments?.payers?.deny ?? []
  const files =
    typeof deny === 'string'
      ? [{ path: deny, at }]
      : deny.map((path, index) => ({ path, at: [...at, index] }))
  return files.map((file) => ({ ...file, lines: linesOf(context, file.path) }))
}

export interface DeclaredPlace {
  readonly method: Method
  readonly path: string
  readonly route: DeclaredRoute
  readonly at: readonly string[]
}

/** The routes with their defaults, and the path of each in the URL and in the file. */
export function routesOf({ routes, defaults }: Declared): DeclaredPlace[] {
  return Object.entries(routes).map(([key, declared]) => {
    const method = METHODS.find((each) => key.startsWith(`${each} `))
    const path = method === undefined ? key : key.slice(method.length + 1)
    const route = defaults === undefined ? declared : complete(path, declared, defaults)
    return { method: method ?? 'GET', path, route, at: ['routes', key] }
  })
}

/** A default upstream and its credential apply to proxies only, and the credential is sent to no other host. */
function complete(
  path: string,
  given: DeclaredRoute,
  { price, timeout, handler: usual, upstream: base, credential }: NonNullable<Declared['defaults']>,
): DeclaredRoute {
  const handler = given.handler ?? (given.upstream === undefined ? usual : PROXY)
  const route = {
    ...(price === undefined ? {} : { price }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(handler === undefined ? {} : { handler }),
    ...given,
  }
  if (handler !== PROXY || base === undefined) return route
  const below = given.upstream ?? withoutPaid(path)
  const upstream = below.startsWith('/') ? base.replace(/\/+$/, '') + below : below
  const isHome = credential !== undefined && originOf(upstream) === originOf(base)
  return { ...(isHome ? { credential } : {}), ...route, upstream }
}

function originOf(url: string): string | undefined {
  const plain = url.replace(/[{}*]/g, '')
  return URL.canParse(plain) ? new URL(plain).origin : undefined
}

/** Keys that a route can take from `defaults` and that have a position in the file. */
const DEFAULTED: ReadonlySet<unknown> = new Set(['price', 'timeout', 'handler'])

/** The document with the defaults filled in: what a route omits is found under `defaults`. */
export function withDefaults(document: SourceDocument): SourceDocument {
  if (!document.has(['defaults'])) return document
  const find = (path: Path): Path => {
    const [section, , key] = path
    if (section !== 'routes' || !DEFAULTED.has(key) || document.has(path.slice(0, 3))) return path
    const elsewhere = ['defaults', ...path.slice(2)]
    return document.has(elsewhere.slice(0, 2)) ? elsewhere : path
  }
  return {
    value: document.value,
    has: (path) => document.has(find(path)),
    at: (path) => document.at(find(path)),
    atKey: (path) => document.atKey(find(path)),
    atHome: (path) => document.atHome(find(path)),
    spelling: (path) => document.spelling(find(path)),
  }
}

/** What routes and tools have in common. */
export interface DeclaredEntry {
  readonly entry: Pick<DeclaredTool, keyof DeclaredRoute & keyof DeclaredTool>
  readonly at: readonly string[]
}

export function entriesOf(declared: Declared): DeclaredEntry[] {
  return [
    ...routesOf(declared).map(({ route, at }) => ({ entry: route, at })),
    ...Object.entries(declared.tools ?? {}).map(([name, entry]) => ({ entry, at: ['tools', name] })),
  ]
}

/** `/paid/gamestore/app/{appid}` → `gamestore/app`, `POST /v1/translate` → `post/v1/translate`. */
export function operationId({ method, path }: Pick<DeclaredPlace, 'method' | 'path'>): string {
  const segments = withoutPaid(path)
    .split('/')
    .filter((segment) => segment !== '' && !segment.startsWith('{'))
  return method === 'GET' || segments.length === 0
    ? segments.join('/')
    : [method.toLowerCase(), ...segments].join('/')
}

/** Name of the built-in handler that sells an existing API. */
export const PROXY = 'proxy'

export function handlerOf(place: DeclaredPlace): string {
  const { handler, upstream } = place.route
  return handler ?? (upstream === undefined ? operationId(place) : PROXY)
}

/** The sample’s path: its own, or the usual one; undefined when there is no sample. */
export function samplePath({ path, route }: DeclaredPlace): string | undefined {
  if (route.sample === undefined || route.sample === false) return undefined
  const usual = usualSamplePath(path)
  return route.sample === true ? usual : (route.sample.path ?? usual)
}

import type { Declared, DeclaredRoute, DeclaredTool } from './schema.ts'
import type { SourceDocument } from './source.ts'

/** What a catalog is checked against besides its own text. */
export interface CheckInputs {
  /** Names of the handlers that exist; undefined when they are not known here. */
  readonly handlers: readonly string[] | undefined
  /** Names of the documents the engine can render. */
  readonly documents: readonly string[]
  /** Reads a file next to the catalog; undefined when there is none. */
  readonly read: (path: string) => Buffer | undefined
}

/** One rule's view of the catalog. */
export interface CheckContext extends CheckInputs {
  readonly declared: Declared
  readonly document: SourceDocument
}

/** A file next to the catalog that holds text. */
export function readText({ read }: Pick<CheckInputs, 'read'>, path: string): string | undefined {
  const bytes = read(path)
  return bytes === undefined ? undefined : withoutMark(bytes.toString('utf8'))
}

/** Some editors begin a file with a byte order mark, which says nothing and would count as a column. */
export function withoutMark(text: string): string {
  return text.replace(/^\ufeff/, '')
}

export interface DeclaredPlace {
  readonly path: string
  readonly route: DeclaredRoute
  readonly at: readonly string[]
}

/** The routes with the path of each in the URL and in the file. */
export function routesOf(declared: Declared): DeclaredPlace[] {
  return Object.entries(declared.routes).map(([path, route]) => ({ path, route, at: ['routes', path] }))
}

/** Routes and tools, with what they have in common. */
export interface DeclaredEntry {
  readonly name: string
  readonly entry: Pick<DeclaredRoute & DeclaredTool, keyof DeclaredRoute & keyof DeclaredTool>
  readonly at: readonly string[]
}

export function entriesOf(declared: Declared): DeclaredEntry[] {
  return [
    ...routesOf(declared).map(({ path, route, at }) => ({ name: path, entry: route, at })),
    ...Object.entries(declared.tools ?? {}).map(([name, entry]) => ({ name, entry, at: ['tools', name] })),
  ]
}

/** `/paid/gamestore/app/{appid}` → `gamestore/app`. */
export function operationId(path: string): string {
  return path
    .split('/')
    .filter((segment) => segment !== '' && !segment.startsWith('{'))
    .slice(1)
    .join('/')
}

/** The name of the handler that comes with the engine and sells an API that exists already. */
export const PROXY = 'proxy'

export function handlerOf({ path, route }: DeclaredPlace): string {
  return route.handler ?? (route.upstream === undefined ? operationId(path) : PROXY)
}

/** The sample’s path: its own, or the twin of the paid path; undefined when there is no sample. */
export function samplePath({ path, route }: DeclaredPlace): string | undefined {
  if (route.sample === undefined || route.sample === false) return undefined
  const twin = path.replace(/^\/paid\//, '/sample/')
  return route.sample === true ? twin : (route.sample.path ?? twin)
}

import type { Declared, DeclaredRoute } from './schema.ts'
import type { SourceDocument } from './source.ts'

/** Gives each thing a name of its own: the first wish that is free, else the last wish with a number behind it. */
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

/** What a catalog is checked against besides its own text. */
export interface Surroundings {
  /** Names of the handlers that exist; undefined when they are not known here. */
  readonly handlers: readonly string[] | undefined
  /** Names of the documents the engine can render. */
  readonly documents: readonly string[]
  /** Reads a file beside the catalog; undefined when there is none. */
  readonly read: (path: string) => Buffer | undefined
}

/** One rule's view of the catalog. */
export interface Subject extends Surroundings {
  readonly declared: Declared
  readonly document: SourceDocument
}

/** A file beside the catalog that holds text. */
export function readText({ read }: Pick<Surroundings, 'read'>, path: string): string | undefined {
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

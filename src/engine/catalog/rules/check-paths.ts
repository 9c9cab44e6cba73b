import { type Method, templatesOf } from '../catalog.ts'
import { type CheckContext, routesOf, samplePath } from '../check-context.ts'
import { didYouMean, error, type Issue, type Position, wordIn } from '../issue.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'

/** Paths that the engine always serves. */
export const RESERVED = [
  '/payments/{id}',
  '/payments/{id}/{digest}',
  '/payments/{id}/{digest}/receipts',
] as const

/** A template may have a suffix that begins with a character no name contains: `{id}.pdf`. */
const SEGMENT = /^(?:[A-Za-z0-9._~-]+|\{[a-z][a-z0-9_]*\}(?:[.~-][A-Za-z0-9._~-]*)?)$/

interface ServedPath {
  readonly method: Method
  readonly path: string
  readonly at: Path
  readonly what: string
}

/** Checks that everything served has a path of its own in canonical form. */
export function* checkPaths(context: CheckContext): Generator<Issue> {
  const sound: ServedPath[] = []
  for (const served of servedPaths(context)) {
    const issue = pathIssue(context, served)
    if (issue === undefined) sound.push(served)
    else yield issue
  }
  yield* checkConflicts(context, sound)
  yield* checkSamples(context)
  yield* checkDocuments(context)
  yield* checkFiles(context)
}

function servedPaths({ declared, document }: CheckContext): ServedPath[] {
  const routes = routesOf(declared).flatMap((place): ServedPath[] => {
    const { method, path, at } = place
    const sample = samplePath(place)
    const route = { method, path, at, what: 'route' }
    if (sample === undefined) return [route]
    const written = [...at, 'sample', 'path']
    return [
      route,
      { method, path: sample, at: document.has(written) ? written : [...at, 'sample'], what: 'sample' },
    ]
  })
  const documents = Object.entries(declared.documents ?? {}).flatMap(([name, entry]): ServedPath[] => {
    const at = ['documents', name]
    const read = { method: 'GET', what: 'document' } as const
    if (typeof entry === 'string') return [{ ...read, path: entry, at }]
    const [list, place] = 'paths' in entry ? [entry.paths, [...at, 'paths']] : [entry, at]
    return list.map((path, index) => ({ ...read, path, at: [...place, index] }))
  })
  const files = Object.keys(declared.files ?? {}).map((path): ServedPath => {
    return { method: 'GET', path, at: ['files', path], what: 'file' }
  })
  return [...routes, ...documents, ...files]
}

/** A sample at the default path, derived from that of its route. */
function isDerived({ what, at }: ServedPath): boolean {
  return what === 'sample' && at.at(-1) === 'sample'
}

function positionOf(document: SourceDocument, served: ServedPath): Position {
  const isValue = served.what === 'document' || (served.what === 'sample' && !isDerived(served))
  return isValue ? document.at(served.at) : document.atKey(served.at)
}

function pathIssue({ document }: CheckContext, served: ServedPath): Issue | undefined {
  const { path, what } = served
  // If the path of the route is wrong, the derived path is wrong too.
  if (isDerived(served)) return undefined
  const fault = (sentence: string, word: string = path): Issue =>
    error(
      'route_path_invalid',
      wordIn(positionOf(document, served), what === 'route' ? String(served.at.at(-1)) : path, word),
      `${path}: ${sentence}`,
    )
  if (path === '/') return what === 'document' ? undefined : fault('only a document can be served at /')
  if (path.endsWith('/')) return fault('a path has no trailing slash: remove it')
  const segments = path.slice(1).split('/')
  if (segments[0] === 'mcp') return fault('paths under /mcp belong to the MCP servers of the tools')
  if (segments.includes('')) return fault('a path has no empty segment: write one slash', '//')
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return fault('a path has no . or .. segment')
  const invalid = segments.find((segment) => !SEGMENT.test(segment))
  if (invalid !== undefined) return fault(segmentRule(invalid), invalid)
  const names = templatesOf(path)
  const isRoute = what === 'route' || what === 'sample'
  if (!isRoute && names.length > 0) return fault('only routes have templates')
  return new Set(names).size < names.length ? fault('a template name occurs twice') : undefined
}

function segmentRule(segment: string): string {
  if (segment.startsWith(':')) return `a template is written {${segment.slice(1)}}, not ${segment}`
  return /[{}]/.test(segment)
    ? `"${segment}" is no template: braces hold one lower-case name and begin a segment, {like_this} or {like_this}.pdf`
    : `"${segment}" has a character that paths do not use (allowed: A-Z a-z 0-9 . _ ~ -)`
}

/** A sample shows a paid answer: a free route needs none. */
function* checkSamples({ declared, document }: CheckContext): Generator<Issue> {
  for (const place of routesOf(declared)) {
    const { at, path } = place
    const isFree = document.spelling([...at, 'price']) === 'free'
    if (isFree && samplePath(place) !== undefined)
      yield error(
        'sample_of_free',
        document.atKey([...at, 'sample']),
        `${path} is free and needs no sample: remove it`,
      )
  }
}

/** Two paths conflict when one request could match both. */
function* checkConflicts({ document }: CheckContext, paths: readonly ServedPath[]): Generator<Issue> {
  const taken = new Map<string, ServedPath>()
  for (const path of RESERVED) {
    const reserved = { method: 'GET', path, at: [], what: 'path of the engine' } as const
    taken.set(shapeOf(reserved), reserved)
  }
  for (const served of paths) {
    const shape = shapeOf(served)
    const other = taken.get(shape)
    if (other === undefined) taken.set(shape, served)
    // Derived paths conflict only where their routes do.
    else if (!isDerived(served) || !isDerived(other)) {
      const where = other.at.length === 0 ? '' : ` (line ${positionOf(document, other).line})`
      yield error(
        'path_conflict',
        positionOf(document, served),
        `${served.path} is served already, by the ${other.what} ${other.path}${where}`,
      )
    }
  }
}

/** Equal for paths that one request could match both. */
export function shapeOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`
}

function* checkDocuments({ declared, document, documents }: CheckContext): Generator<Issue> {
  for (const [name, entry] of Object.entries(declared.documents ?? {})) {
    const planned = typeof entry === 'object' && 'planned' in entry && entry.planned === true
    if (planned || documents.includes(name)) continue
    const hint = `${didYouMean(name, documents)}; there are: ${documents.join(', ')}`
    yield error(
      'document_unknown',
      document.atKey(['documents', name]),
      `there is no document "${name}"${hint}`,
    )
  }
}

function* checkFiles({ declared, document, read }: CheckContext): Generator<Issue> {
  for (const [path, entry] of Object.entries(declared.files ?? {})) {
    if (typeof entry === 'string' || entry.planned === true) continue
    if (entry.file === undefined)
      yield error('key_missing', document.atKey(['files', path]), `${path} needs a text, or the key "file"`)
    else if (read(entry.file) === undefined)
      yield error('file_unreadable', document.at(['files', path, 'file']), `${entry.file} cannot be read`)
  }
}

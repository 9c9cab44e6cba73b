import { templatesOf } from './catalog.ts'
import { error, type Issue, type Position, wordIn } from './issue.ts'
import type { SourceDocument } from './source.ts'
import { routesOf, samplePath, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

/** Paths the engine serves by itself, whatever the catalog says. */
export const RESERVED = ['/payments/{id}'] as const

const SEGMENT = /^(?:[A-Za-z0-9._~-]+|\{[a-z][a-z0-9_]*\})$/

interface Place {
  readonly path: string
  readonly at: readonly (string | number)[]
  readonly what: string
}

/** Everything that is served stands at a path of its own, written in its canonical form. */
export function checkPlaces(subject: Subject): Issue[] {
  const judged = placesOf(subject).map((place) => ({ place, issues: checkPath(subject, place) }))
  const sound = judged.filter(({ issues }) => issues.length === 0).map(({ place }) => place)
  return [
    ...judged.flatMap(({ issues }) => issues),
    ...checkConflicts(subject, sound),
    ...checkSamples(subject),
    ...checkDocuments(subject),
    ...checkFiles(subject),
  ]
}

function placesOf({ declared, document }: Subject): Place[] {
  const routes = routesOf(declared).flatMap((place): Place[] => {
    const { path, at } = place
    const sample = samplePath(place)
    const route = { path, at, what: 'route' }
    // The twin of a route that is not under /paid/ is that route itself, and told as such.
    if (sample === undefined || !sample.startsWith('/sample/')) return [route]
    const written = [...at, 'sample', 'path']
    return [route, { path: sample, at: document.has(written) ? written : [...at, 'sample'], what: 'sample' }]
  })
  const documents = Object.entries(declared.documents ?? {}).flatMap(([name, entry]): Place[] => {
    if (typeof entry === 'string') return [{ path: entry, at: ['documents', name], what: 'document' }]
    const [list, at] =
      'paths' in entry ? [entry.paths, ['documents', name, 'paths']] : [entry, ['documents', name]]
    return list.map((path, index) => ({ path, at: [...at, index], what: 'document' }))
  })
  const files = Object.keys(declared.files ?? {}).map((path) => ({ path, at: ['files', path], what: 'file' }))
  return [...routes, ...documents, ...files]
}

/** A sample that stands at the twin of its route’s path, and says no path of its own. */
function isTwin({ what, at }: Place): boolean {
  return what === 'sample' && at.at(-1) === 'sample'
}

function positionOf(document: SourceDocument, place: Place): Position {
  const isValue = place.what === 'document' || (place.what === 'sample' && !isTwin(place))
  return isValue ? document.at(place.at) : document.atKey(place.at)
}

function checkPath({ document }: Subject, place: Place): Issue[] {
  const { path, what } = place
  const position = positionOf(document, place)
  const fault = (sentence: string, word: string = path): Issue[] => [
    error('route_path_invalid', wordIn(position, path, word), `${path}: ${sentence}`),
  ]
  // The twin of a path that is wrong is wrong with it.
  if (isTwin(place)) return []
  if (path === '/') return what === 'document' ? [] : fault('only a document can stand at /')
  if (path.endsWith('/')) return fault('a path has no trailing slash: remove it')
  const segments = path.slice(1).split('/')
  if (segments.includes('')) return fault('a path has no empty segment: write one slash', '//')
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return fault('a path has no . or .. segment')
  const strange = segments.find((segment) => !SEGMENT.test(segment))
  if (strange !== undefined) return fault(strangeSentence(strange), strange)
  const names = templatesOf(path)
  const isRoute = what === 'route' || what === 'sample'
  if (!isRoute && names.length > 0) return fault('only routes have templates')
  if (!isRoute && path.startsWith('/paid/')) return fault('only priced routes stand under /paid/')
  if (new Set(names).size < names.length) return fault('a template name stands twice')
  if (what === 'route' && path.startsWith('/sample/'))
    return fault('write samples under the "sample" key of their route')
  return []
}

function strangeSentence(segment: string): string {
  if (segment.startsWith(':')) return `a template is written {${segment.slice(1)}}, not ${segment}`
  return /[{}]/.test(segment)
    ? `"${segment}" is no template: braces hold one lower-case name and fill a whole segment, {like_this}`
    : `"${segment}" has a character that paths do not use (allowed: A-Z a-z 0-9 . _ ~ -)`
}

/** A sample shows what is sold: a free route needs none. */
function checkSamples({ declared, document }: Subject): Issue[] {
  return routesOf(declared).flatMap((place) => {
    const at = [...place.at, 'sample']
    if (samplePath(place) === undefined || document.spelling([...place.at, 'price']) !== 'free') return []
    if (place.path.startsWith('/paid/')) return []
    return [
      error('sample_of_free', document.atKey(at), `${place.path} is free and needs no sample: remove it`),
    ]
  })
}

/** Two paths conflict when one request could mean both. */
function checkConflicts({ document }: Subject, places: readonly Place[]): Issue[] {
  const taken = new Map<string, Place>()
  for (const path of RESERVED) taken.set(shapeOf(path), { path, at: [], what: 'path of the engine' })
  return places.flatMap((place) => {
    const shape = shapeOf(place.path)
    const other = taken.get(shape)
    if (other === undefined) {
      taken.set(shape, place)
      return []
    }
    // Twins meet only where their routes do.
    if (isTwin(place) && isTwin(other)) return []
    const at = positionOf(document, place)
    const where = other.at.length === 0 ? '' : ` (line ${positionOf(document, other).line})`
    return [
      error(
        'path_conflict',
        at,
        `${place.path} is served already, by the ${other.what} ${other.path}${where}`,
      ),
    ]
  })
}

function shapeOf(path: string): string {
  return path.replace(/\{[^}]*\}/g, '{}')
}

function checkDocuments({ declared, document, documents }: Subject): Issue[] {
  return Object.entries(declared.documents ?? {}).flatMap(([name, entry]) => {
    const planned = typeof entry === 'object' && 'planned' in entry && entry.planned === true
    if (planned || documents.includes(name)) return []
    const at = document.atKey(['documents', name])
    return [
      error(
        'document_unknown',
        at,
        `there is no document "${name}"${didYouMean(name, documents)}; there are: ${documents.join(', ')}`,
      ),
    ]
  })
}

function checkFiles({ declared, document, read }: Subject): Issue[] {
  return Object.entries(declared.files ?? {}).flatMap(([path, entry]) => {
    if (typeof entry === 'string' || entry.planned === true) return []
    if (entry.file === undefined) {
      return [
        error('key_missing', document.atKey(['files', path]), `${path} needs a text, or the key "file"`),
      ]
    }
    if (read(entry.file) !== undefined) return []
    return [error('file_unreadable', document.at(['files', path, 'file']), `${entry.file} cannot be read`)]
  })
}

import { RESERVED, shapeOf } from '../../engine/catalog/rules/check-paths.ts'
import { snake } from './names.ts'
import type { Named } from './parameter.ts'

/** A unique path for each operation: another may differ in the names of its parameters only. */
export function freePath(taken: Set<string>, method: string, route: string): string {
  let path = route
  for (let number = 2; taken.has(shapeOf({ method, path })); number += 1)
    path = route.replace(/^\/([^/]+)/, (_, first: string) =>
      first.startsWith('{') ? `/${number}/${first}` : `/${first}-${number}`,
    )
  taken.add(shapeOf({ method, path }))
  return path
}

/** For `freePath`: the paths that the engine serves. */
export function takenPaths(): Set<string> {
  return new Set(RESERVED.map((path) => shapeOf({ method: 'GET', path })))
}

/** The path of a route; characters that a catalog segment cannot contain separate segments or are removed. */
export function routePath(path: string, named: readonly Named[]): string {
  const [bare = ''] = path.split(/[?#]/)
  const segments = bare.split('/').flatMap((segment) => {
    const filled = rename(segment, named)
    if (/^\{[a-z0-9_]+\}(?:[.~-][A-Za-z0-9._~-]*)?$/.test(filled)) return [filled]
    return filled
      .split(/(\{[a-z0-9_]+\})/)
      .map((part) => (part.startsWith('{') ? part : part.replace(/[^A-Za-z0-9._~-]+/g, '')))
  })
  const sound = segments.filter((segment) => /[^.]/.test(segment))
  const [first] = sound
  return `/${first === 'mcp' ? 'api/' : ''}${sound.join('/') || 'index'}`
}

function rename(text: string, named: readonly Named[]): string {
  return text.replace(/\{([^{}/]+)\}/g, (_, wire: string) => {
    const found = named.find((each) => each.wire === wire && each.place === 'path')
    return `{${found?.name ?? snake(wire)}}`
  })
}

/** A proxy passes parameters on by name; the address contains those that the API names differently or repeats. */
export function upstreamOf(path: string, named: readonly Named[]): string {
  const [place = '', query] = path.split('?')
  const written = named.filter(
    (each) => each.place === 'query' && (each.wire !== each.name || each.isRepeated),
  )
  const pairs = [
    ...(query === undefined ? [] : [query]),
    ...written.map(
      ({ wire, name, isRepeated }) => `${encodeURIComponent(wire)}={${name}${isRepeated ? '*' : ''}}`,
    ),
  ]
  return rename(place, named) + (pairs.length === 0 ? '' : `?${pairs.join('&')}`)
}

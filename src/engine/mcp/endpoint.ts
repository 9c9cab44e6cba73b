import type { Catalog } from '../catalog/catalog.ts'

/** Address of each companion server by its name: `/mcp` on a base of its own, else a path below the service's. */
export function endpointsOf(
  { servers }: Pick<Catalog, 'servers'>,
  baseUrl: string,
  bases: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.keys(servers).map((name): [string, string] => {
      const base = Object.hasOwn(bases, name) ? bases[name] : undefined
      return [name, base === undefined ? `${baseUrl}${localPath(name)}` : `${base}${PATH}`]
    }),
  )
}

const PATH = '/mcp'

function localPath(name: string): string {
  return `${PATH}/${name}`
}

/** The server a request is for. The path below the service's base is served in any case, for use on one machine. */
export function serverAt(
  endpoints: ReadonlyMap<string, string>,
  host: string,
  path: string,
): string | undefined {
  if (!path.startsWith(PATH)) return undefined
  for (const [name, url] of endpoints) {
    if (path === localPath(name)) return name
    const endpoint = new URL(url)
    if (path === endpoint.pathname && host.toLowerCase() === endpoint.host) return name
  }
  return undefined
}

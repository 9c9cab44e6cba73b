/**
 * How servers that are in use find a route, each in its own order, written independently of what guards the paths. A path is
 * sold when one of them finds a sold route for it.
 */
const SERVERS: readonly ((target: string) => string)[] = [
  // Express, Fastify: case and one trailing slash.
  (target) => decoded(pathOf(target)).toLowerCase().replace(/\/$/, ''),
  // Node.js programs that parse the target as a URL.
  (target) => decoded(parsed(target)).toLowerCase().replace(/\/+$/, ''),
  // Rails: a format at the end.
  (target) =>
    decoded(pathOf(target))
      .replace(/\/+/g, '/')
      .replace(/\/$/, '')
      .replace(/\.[^/.?]+$/, ''),
  // Tomcat, Spring: parameters of segments first, dots last.
  (target) =>
    resolved(decoded(pathOf(target).replace(/;[^/]*/g, '')).replace(/\/+/g, '/')).replace(/\/$/, ''),
  // The same with a decoder in front that has decoded before.
  (target) =>
    resolved(decoded(decoded(pathOf(target))).replace(/;[^/]*/g, ''))
      .replace(/\/+/g, '/')
      .replace(/\/$/, ''),
  // IIS: backslashes, ends of names, all in lower case.
  (target) =>
    resolved(
      decoded(decoded(pathOf(target)))
        .replaceAll('\\', '/')
        .replace(/\/+/g, '/'),
    )
      .split('/')
      .map((name) => name.replace(/[. ]+$/, ''))
      .join('/')
      .toLowerCase()
      .replace(/\/+$/, ''),
  // Programs in C: the end is a NUL.
  (target) => decoded(pathOf(target)).split('\0')[0]?.replace(/\/$/, '') ?? '',
  // Frameworks in Python that normalize Unicode.
  (target) =>
    decoded(pathOf(target))
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[\s/]+$/, ''),
  // Gateways that decode until nothing changes.
  (target) =>
    resolved(decoded(decoded(decoded(pathOf(target)))).replace(/\/+/g, '/'))
      .toLowerCase()
      .replace(/\/$/, ''),
]

const SOLD = [/^\/v1\/translate$/, /^\/search$/, /^\/v1\/items\/[^/]+$/]

export function isSold(target: string): boolean {
  return SERVERS.some((pathOfServer) => SOLD.some((pattern) => pattern.test(pathOfServer(target))))
}

function pathOf(target: string): string {
  return target.replace(/[?#].*$/s, '')
}

function parsed(target: string): string {
  try {
    return new URL(target, 'http://localhost').pathname
  } catch {
    return pathOf(target)
  }
}

/** What is malformed stays as it is. */
function decoded(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run
    }
  })
}

function resolved(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/').slice(1)) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  return `/${kept.join('/')}`
}

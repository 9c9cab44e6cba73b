/** The path and query of a request target. */
interface Target {
  readonly path: string
  readonly query: string
}

/**
 * Splits a request target (RFC 9112 §3.2) without reading anything into it: URL parsers normalize what they find, and every
 * normalized path would be one more spelling. The absolute form is allowed; whose host it names does not matter.
 */
export function splitTarget(target: string): Target {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const mark = local.indexOf('?')
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) }
}

/** Names of parameters by which frameworks take one method for another, `_` written as `-`. */
const METHOD_NAMES = /^(?:-+method|(?:-|x-)?http-method(?:-override)?|(?:x-)?method-override|x-method)$/

/** A query without parameters that would override the method; otherwise byte for byte. */
export function withoutMethods(query: string): string {
  if (!/method/i.test(decodeSegment(query) ?? 'method')) return query
  const parts = query.split(/(?=[&;])/).filter((part) => {
    const [name = ''] = part.replace(/^[&;]/, '').split('=')
    return !METHOD_NAMES.test((decodeSegment(name) ?? name).toLowerCase().replaceAll('_', '-'))
  })
  return parts.join('').replace(/^[&;](?=.)/, query.startsWith('&') ? '&' : '')
}

/**
 * The one spelling of a request path that is served: what is matched is what is dispatched. Anything that other software
 * might read as a second spelling of a path is no path at all: empty and dot segments, a trailing slash, `;`,
 * backslashes, and whatever RFC 3986 §6.2.2 would normalise (`%72` for `r`, `%c3` for `%C3`).
 */
export function canonicalPath(raw: string): string | undefined {
  if (raw === '/') return raw
  if (!CHARACTERS.test(raw) || raw.endsWith('/') || /\/\/|%(?:5C|00)/.test(raw)) return undefined
  if (!raw.includes('%') && !raw.includes('.')) return raw
  return raw.slice(1).split('/').every(isCanonical) ? raw : undefined
}

/** RFC 3986 §3.3 pchar without `;`, encoded octets in upper case. */
const CHARACTERS = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-F]{2})*$/

/** Percent-encoded characters that need no encoding. */
const UNRESERVED = /%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)/

function isCanonical(segment: string): boolean {
  if (segment === '.' || segment === '..' || UNRESERVED.test(segment)) return false
  const decoded = decodeSegment(segment)
  // An encoded slash is part of a value, and an upstream may decode it: no value may contain dot segments.
  return decoded?.split('/').every((part) => part !== '.' && part !== '..') ?? false
}

/** The decoded text of a segment; undefined when its percent-encoding is invalid. */
export function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

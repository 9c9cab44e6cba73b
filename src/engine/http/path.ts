/**
 * The one spelling of a request path that is served: what is matched is what is dispatched. Anything that other software
 * might read as a second spelling of a path (empty or dot segments, `;`, backslashes, encoded slashes, trailing slash)
 * is no path at all; encoded unreserved characters are refused too, for `%72` is a second spelling of `r`.
 */
export function canonicalPath(raw: string): string | undefined {
  if (raw === '/') return raw
  if (!raw.startsWith('/') || raw.endsWith('/') || /\/\/|[;\\]|%(?:2f|5c|00)/i.test(raw)) return undefined
  if (!raw.includes('%') && !raw.includes('.')) return raw
  const segments = raw.slice(1).split('/')
  return segments.every(isCanonical) ? raw : undefined
}

function isCanonical(segment: string): boolean {
  const decoded = decodeSegment(segment)
  if (decoded === undefined || decoded === '.' || decoded === '..') return false
  // Encoded letters, digits and marks that need no encoding would make a second spelling.
  return !/%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)/i.test(segment)
}

/** A segment's text; undefined when its percent-encoding is broken. */
export function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

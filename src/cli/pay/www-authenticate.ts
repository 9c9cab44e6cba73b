/** One challenge of a WWW-Authenticate header; names of schemes and parameters are in lower case. */
export interface Challenge {
  readonly scheme: string
  readonly parameters: ReadonlyMap<string, string>
}

/** A parameter, or a scheme with the token68 that may follow it, and the separators before them. */
const ITEM = (() => {
  const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
  const end = '(?=[ \\t]*(?:,|$))'
  const parameter = `(${token})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${token}))${end}`
  const scheme = `(${token})(?:[ \\t]+[A-Za-z0-9._~+/-]+=*${end}|(?=[ \\t,]|$))`
  // Sticky: it ends at the first thing that is neither.
  return new RegExp(`[ \\t,]*(?:${parameter}|${scheme})`, 'gy')
})()

/**
 * Reads a WWW-Authenticate header, several lines merged into one as well (RFC 9110 §11.6.1).
 *
 * Left out are the challenge in which it becomes unreadable, all that follow, and one that names a parameter twice.
 *
 * @example parseChallenges('Bearer realm="a, b", Payment id="1", method=tempo') // two challenges
 */
export function parseChallenges(header: string): Challenge[] {
  const text = header.replace(/[ \t,]+$/, '')
  const found: { readonly scheme: string; readonly parameters: [string, string][] }[] = []
  let read = 0
  for (const [item, name, quoted, plain, scheme] of text.matchAll(ITEM)) {
    read += item.length
    if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), parameters: [] })
    if (name !== undefined) {
      found.at(-1)?.parameters.push([name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''])
    }
  }
  if (read < text.length) found.pop()
  return found.flatMap(({ scheme, parameters }) => {
    const once = new Map(parameters)
    return once.size === parameters.length ? [{ scheme, parameters: once }] : []
  })
}

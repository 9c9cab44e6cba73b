/** The rules of a robots.txt for one program: those of its group; the longest match counts (RFC 9309 §2.2.2). */
export interface Rules {
  /** One to a line, `+` before what is allowed and `-` before what is not: a thousand sites are kept in few bytes. */
  readonly lines: string
}

export const OPEN: Rules = { lines: '' }
export const CLOSED: Rules = { lines: '-/' }

/** Limit of kept rules: earlier ones count, so that no site can fill the memory. */
const MOST_CHARACTERS = 20_000

/**
 * Reads the groups for `agent`, or those for `*` when it has none of its own. Lines that say nothing to us are skipped.
 *
 * @param agent the product token: letters, `_` and `-`.
 */
export function readRobots(text: string, agent: string): Rules {
  const groups = new Map<string, string>()
  const ours: ReadonlySet<string> = new Set([agent.toLowerCase(), '*'])
  let named = new Set<string>()
  let inRules = false
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, key = '', value = ''] = /^[\uFEFF \t]*([a-z-]{1,20})[ \t]*:([^#]*)/i.exec(line) ?? []
    const verb = key.toLowerCase()
    if (verb === 'user-agent') {
      if (inRules) named = new Set()
      inRules = false
      const name = /^[a-z_-]+|\*/i.exec(value.trim())?.[0].toLowerCase() ?? ''
      // A crowd of other names, or of ours again and again, would make every rule dear.
      if (ours.has(name)) named.add(name)
    } else if (verb === 'allow' || verb === 'disallow') {
      inRules = true
      const pattern = normalise(value.trim())
      for (const name of named) {
        const lines = groups.get(name) ?? ''
        const longer = `${lines}${verb === 'allow' ? '+' : '-'}${pattern}\n`
        groups.set(name, pattern === '' || longer.length > MOST_CHARACTERS ? lines : longer)
      }
    }
  }
  const lines = groups.get(agent.toLowerCase()) ?? groups.get('*') ?? ''
  // A text put together from pieces holds on to the whole it was cut from; patterns are ASCII by now.
  return { lines: Buffer.from(lines, 'latin1').toString('latin1') }
}

/** Whether the rules let a program read this address. */
export function permits({ lines }: Rules, { pathname, search }: URL): boolean {
  const path = normalise(pathname + search)
  if (path === '/robots.txt') return true
  let longest = -1
  let permitted = true
  for (const line of lines.split('\n').filter(Boolean)) {
    const allowed = line.startsWith('+')
    const pattern = line.slice(1)
    if (pattern.length < longest || (pattern.length === longest && !allowed)) continue
    if (!matches(pattern, path)) continue
    longest = pattern.length
    permitted = allowed
  }
  return permitted
}

/** `*` is any text and `$` at the end is the end. Each piece is looked for once, so no pattern takes long. */
function matches(pattern: string, path: string): boolean {
  const whole = pattern.endsWith('$')
  const [start = '', ...pieces] = (whole ? pattern.slice(0, -1) : pattern).split('*')
  if (!path.startsWith(start)) return false
  if (pieces.length === 0) return !whole || path === start
  const last = whole ? pieces.pop() : undefined
  let at = start.length
  for (const piece of pieces) {
    const found = path.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return last === undefined || (path.length - last.length >= at && path.endsWith(last))
}

/** One spelling for what RFC 9309 §2.2.2 takes as equal: reserved characters stay encoded, the others do not. */
function normalise(text: string): string {
  return text
    .replace(/[^\u0021-\u007e]+/g, (characters) => encodeURI(characters))
    .replace(/%[0-9a-f]{2}/gi, (code) => {
      const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase()
    })
}

/** What a robots.txt says to one program: the rules of its group, the longest that matches counts (RFC 9309 §2.2.2). */
export interface Rules {
  readonly rules: readonly { readonly verb: 'allow' | 'disallow'; readonly pattern: string }[]
}

export const OPEN: Rules = { rules: [] }
export const CLOSED: Rules = { rules: [{ verb: 'disallow', pattern: '/' }] }

/** More rules than this are nobody's policy; matching them all would cost more than the page. */
const MOST_RULES = 5000

/**
 * Reads the groups for `agent`, or those for `*` when it has none of its own. Lines that say nothing to us are skipped.
 *
 * @param agent the product token: letters, `_` and `-`.
 */
export function readRobots(text: string, agent: string): Rules {
  const groups = new Map<string, { verb: 'allow' | 'disallow'; pattern: string }[]>()
  let named: string[] = []
  let inRules = false
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, key = '', value = ''] = /^[\uFEFF \t]*([a-z-]{1,20})[ \t]*:([^#]*)/i.exec(line) ?? []
    const verb = key.toLowerCase()
    if (verb === 'user-agent') {
      if (inRules) named = []
      inRules = false
      named.push(/^[a-z_-]+|\*/i.exec(value.trim())?.[0].toLowerCase() ?? '')
    } else if (verb === 'allow' || verb === 'disallow') {
      inRules = true
      const pattern = normalise(value.trim())
      for (const name of new Set(named)) {
        const rules = groups.get(name) ?? []
        groups.set(name, rules)
        if (pattern !== '' && rules.length < MOST_RULES) rules.push({ verb, pattern })
      }
    }
  }
  return { rules: groups.get(agent.toLowerCase()) ?? groups.get('*') ?? [] }
}

/** Whether the rules let a program read this address. */
export function permits({ rules }: Rules, { pathname, search }: URL): boolean {
  const path = normalise(pathname + search)
  if (path === '/robots.txt') return true
  let longest = -1
  let permitted = true
  for (const { verb, pattern } of rules) {
    if (pattern.length < longest || (pattern.length === longest && verb === 'disallow')) continue
    if (!matches(pattern, path)) continue
    longest = pattern.length
    permitted = verb === 'allow'
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

import { decodeEntities } from './entities.ts'

export type Token =
  | { readonly kind: 'open'; readonly tag: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly kind: 'close'; readonly tag: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'comment'; readonly text: string }

/** Elements whose content is always text (HTML §13.2.5). */
const RAW: ReadonlySet<string> = new Set([
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
  'iframe',
  'noembed',
  'noframes',
  'plaintext',
])
const DECODED: ReadonlySet<string> = new Set(['textarea', 'title'])

/** Cuts a page into tags, text and comments, as browsers do where it matters, in time proportional to its length. */
export function* tokens(html: string): Generator<Token> {
  let at = 0
  while (at < html.length) {
    const next = html.indexOf('<', at)
    const end = next === -1 ? html.length : next
    if (end > at) yield { kind: 'text', text: decodeEntities(html.slice(at, end)) }
    if (next === -1) return
    const tag = /[a-zA-Z][^\s/>]*/y
    const closing = html[next + 1] === '/'
    tag.lastIndex = next + (closing ? 2 : 1)
    const name = tag.exec(html)?.[0].toLowerCase()
    if (name === undefined) {
      const { token, after } = odd(html, next)
      yield token
      at = after
      continue
    }
    const { attributes, after } = readAttributes(html, tag.lastIndex)
    at = after
    if (closing) {
      yield { kind: 'close', tag: name }
      continue
    }
    yield { kind: 'open', tag: name, attributes }
    if (!RAW.has(name)) continue
    const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
    close.lastIndex = at
    const found = close.exec(html)?.index ?? html.length
    const text = html.slice(at, found)
    if (text !== '') yield { kind: 'text', text: DECODED.has(name) ? decodeEntities(text) : text }
    at = found
  }
}

/** What begins with `<` and is no tag: a comment, a declaration, or just the character. */
function odd(html: string, at: number): { readonly token: Token; readonly after: number } {
  const isComment = html.startsWith('<!--', at)
  if (isComment || '!?/'.includes(html[at + 1] ?? ' ')) {
    const [start, mark] = isComment ? [at + 4, '-->'] : [at + 2, '>']
    const end = html.indexOf(mark, start)
    const text = isComment ? html.slice(start, end === -1 ? html.length : end) : ''
    return { token: { kind: 'comment', text }, after: end === -1 ? html.length : end + mark.length }
  }
  return { token: { kind: 'text', text: '<' }, after: at + 1 }
}

function readAttributes(
  html: string,
  from: number,
): { readonly attributes: ReadonlyMap<string, string>; readonly after: number } {
  const attributes = new Map<string, string>()
  const pattern = /[\s/]*(?:(>)|([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']?[^\s>]*)))?|=)/y
  pattern.lastIndex = from
  for (;;) {
    const before = pattern.lastIndex
    const match = pattern.exec(html)
    if (match === null) return { attributes, after: endOf(html, before) }
    const [, end, name, double, single, bare] = match
    if (end !== undefined) return { attributes, after: pattern.lastIndex }
    const key = name?.toLowerCase()
    if (key !== undefined && !attributes.has(key) && attributes.size < MOST_ATTRIBUTES)
      attributes.set(key, decodeEntities(double ?? single ?? bare ?? ''))
  }
}

const MOST_ATTRIBUTES = 100

/** A tag that is never closed has no end but that of the page. */
function endOf(html: string, from: number): number {
  const end = html.indexOf('>', from)
  return end === -1 ? html.length : end + 1
}

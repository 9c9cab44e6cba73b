import { tokens } from './tokens.ts'

export interface Element {
  readonly tag: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: (Element | string)[]
}

export interface Page {
  readonly root: Element
  readonly comments: readonly string[]
}

/** Deeper elements become siblings: no page for people needs more, and who walks the tree must not fall. */
const DEEPEST = 400

const VOID: ReadonlySet<string> = new Set(
  'area base br col embed hr img input link meta param source track wbr'.split(' '),
)
const CLOSES_P: ReadonlySet<string> = new Set(
  'address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul'.split(
    ' ',
  ),
)
/** What an opening tag ends when it is still open, and where the search for it stops. */
const ENDS: Readonly<Record<string, readonly [readonly string[], readonly string[]]>> = {
  li: [['li'], ['ul', 'ol', 'menu']],
  dt: [['dt', 'dd'], ['dl']],
  dd: [['dt', 'dd'], ['dl']],
  tr: [['tr', 'td', 'th'], ['table']],
  td: [
    ['td', 'th'],
    ['tr', 'table'],
  ],
  th: [
    ['td', 'th'],
    ['tr', 'table'],
  ],
  option: [['option'], ['select']],
}

/** Builds the tree of a page: forgiving as browsers are with end tags, in time proportional to its length. */
export function parsePage(html: string): Page {
  const root: Element = { tag: '#page', attributes: new Map(), children: [] }
  const open: Element[] = [root]
  const count = new Map<string, number>()
  const comments: string[] = []
  const top = (): Element => open.at(-1) ?? root
  const close = (to: number): void => {
    for (const { tag } of open.splice(to)) count.set(tag, (count.get(tag) ?? 1) - 1)
  }
  const closeOne = (tags: readonly string[], until: readonly string[]): void => {
    for (let place = open.length - 1; place > 0; place -= 1) {
      const tag = open[place]?.tag ?? ''
      if (tags.includes(tag)) return close(place)
      if (until.includes(tag)) return
    }
  }
  for (const token of tokens(html)) {
    switch (token.kind) {
      case 'text':
        top().children.push(token.text)
        break
      case 'comment':
        if (token.text !== '') comments.push(token.text)
        break
      case 'close':
        if ((count.get(token.tag) ?? 0) > 0) closeOne([token.tag], [])
        break
      case 'open': {
        const { tag, attributes } = token
        if (CLOSES_P.has(tag) && (count.get('p') ?? 0) > 0)
          closeOne(['p'], ['div', 'td', 'li', 'section', 'article'])
        const ends = ENDS[tag]
        if (ends !== undefined && ends[0].some((each) => (count.get(each) ?? 0) > 0)) closeOne(...ends)
        const element: Element = { tag, attributes, children: [] }
        top().children.push(element)
        if (VOID.has(tag) || open.length > DEEPEST) break
        open.push(element)
        count.set(tag, (count.get(tag) ?? 0) + 1)
      }
    }
  }
  return { root, comments }
}

/** Every element below, in the order of the page; a stack of its own, since nested generators cost their depth. */
export function* descendants(element: Element): Generator<Element> {
  const waiting: Element[] = []
  const add = ({ children }: Element): void => {
    for (let place = children.length - 1; place >= 0; place -= 1) {
      const child = children[place]
      if (typeof child === 'object') waiting.push(child)
    }
  }
  add(element)
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield next
    add(next)
  }
}

export function textOf(element: Element): string {
  const parts: string[] = []
  const walk = (node: Element): void => {
    for (const child of node.children) {
      if (typeof child === 'string') parts.push(child)
      else walk(child)
    }
  }
  walk(element)
  return parts.join('')
}

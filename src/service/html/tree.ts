import { parseHtml } from './bounded-parser.ts'

export interface Element {
  readonly tag: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: (Element | string)[]
}

export interface Page {
  readonly root: Element
  readonly comments: readonly string[]
}

const MOST_ATTRIBUTES = 100

/** Builds the tree of a page. */
export function parsePage(html: string): Page {
  const root: Element = { tag: '#page', attributes: new Map(), children: [] }
  const comments: string[] = []
  const open = [root]
  let attributes = new Map<string, string>()
  const childrenOfTop = (): (Element | string)[] => (open.at(-1) ?? root).children
  parseHtml(html, {
    onopentagname: (tag) => {
      attributes = new Map()
      const element = { tag: tag.toLowerCase(), attributes, children: [] }
      childrenOfTop().push(element)
      open.push(element)
    },
    onattribute: (name, value) => {
      if (attributes.size < MOST_ATTRIBUTES && !attributes.has(name)) attributes.set(name, value)
    },
    onclosetag: () => {
      open.pop()
    },
    ontext: (text) => {
      // An entity is a text of its own: what belongs together is joined.
      const children = childrenOfTop()
      const last = children.at(-1)
      if (typeof last === 'string') children[children.length - 1] = last + text
      else children.push(text)
    },
    oncomment: (text) => {
      if (text !== '') comments.push(text)
    },
  })
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

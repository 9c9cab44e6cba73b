import { isDropped } from './article.ts'
import type { Element } from './tree.ts'

const BLOCKS: ReadonlySet<string> = new Set(
  'address article blockquote body caption dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 header hr li main ol p section summary table tbody tfoot thead tr ul html'.split(
    ' ',
  ),
)

export interface Written {
  /** Paragraphs, separated by empty lines; code keeps its line breaks, cells of a table row are in one line. */
  readonly text: string
  readonly links: number
  /** What the page has for programs only, or hides from people. */
  readonly hidden: string
}

/** Writes elements as text. */
export function writeText(elements: readonly Element[]): Written {
  const blocks: string[] = []
  const hidden: string[] = []
  let line = ''
  let links = 0
  const flush = (): void => {
    const text = line.replaceAll(/[ \t\n\r\f]+/g, ' ').trim()
    if (text !== '' && text !== '-') blocks.push(text)
    line = ''
  }
  const walk = (element: Element): void => {
    const dropped = isDropped(element)
    if (dropped === 'hidden') hidden.push(plain(element))
    if (dropped !== 'seen') return
    const { tag } = element
    if (tag === 'pre') {
      flush()
      const code = plain(element)
        .replaceAll(/\r\n?/g, '\n')
        .replace(/^\n+|\s+$/g, '')
      if (code !== '') blocks.push(code)
      return
    }
    if (tag === 'a' && element.attributes.has('href')) links += 1
    if (tag === 'br') line += ' '
    if ((tag === 'td' || tag === 'th') && line.trim() !== '') line += ' | '
    if (BLOCKS.has(tag)) flush()
    if (tag === 'li') line = '- '
    for (const child of element.children) {
      if (typeof child === 'string') line += child
      else walk(child)
    }
    if (BLOCKS.has(tag)) flush()
  }
  for (const element of elements) walk(element)
  flush()
  return { text: blocks.join('\n\n'), links, hidden: hidden.join('\n') }
}

function plain(element: Element): string {
  return element.children
    .map((child) => {
      if (typeof child === 'string') return child
      if (child.tag === 'br') return '\n'
      return isDropped(child) === 'furniture' ? '' : plain(child)
    })
    .join('')
}

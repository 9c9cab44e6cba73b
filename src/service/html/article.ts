import { descendants, textOf, type Element } from './tree.ts'

/** The part of a page that is there to be read. */
export interface Article {
  readonly how: 'article' | 'fallback'
  readonly elements: readonly Element[]
}

const NEVER_TEXT = 'script style noscript template svg iframe object canvas head select button input dialog'
const AROUND = 'nav footer aside form menu'
const DROPPED: ReadonlySet<string> = new Set(`${NEVER_TEXT} ${AROUND}`.split(' '))
const GOOD = /article|body|content|entry|main|page|post|text|blog|story/i
const BAD =
  /-ad-|hidden|banner|combx|comment|com-|contact|cookie|footer|gdpr|masthead|media|meta|outbrain|popup|promo|related|scroll|share|shoutbox|sidebar|skyscraper|sponsor|shopping|tags|widget|newsletter|subscribe|breadcrumb|pagination/i
const HOLDERS: ReadonlySet<string> = new Set(['p', 'pre', 'blockquote', 'td', 'li', 'dd', 'figcaption'])
const COMMENTS: ReadonlySet<string> = new Set(
  'comments comment-list commentlist comments-area comments-section comment-section disqus_thread'.split(' '),
)
const OFF_SCREEN: ReadonlySet<string> = new Set(
  'sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only'.split(' '),
)
/** Less is no article, and then all of the page's body is better. */
const LEAST = 200

interface Weight {
  length: number
  linked: number
  score: number
}

/**
 * Finds the article by the method of Arc90's Readability: paragraphs give points to what holds them, links take points
 * away, and what is next to the winner joins it when it reads like it. One walk, so no page takes long.
 */
export function findArticle(root: Element): Article {
  const weights = new Map<Element, Weight>()
  weigh(root, [], weights)
  const ranked = [...weights].filter(([{ tag }, { score }]) => score > 0 && tag !== '#page')
  const points = ({ linked, length, score }: Weight): number => score * (1 - linked / Math.max(1, length))
  let [best, most] = [undefined as Element | undefined, 0]
  for (const [element, weight] of ranked) {
    if (points(weight) <= most) continue
    most = points(weight)
    best = element
  }
  if (best !== undefined && (weights.get(best)?.length ?? 0) >= LEAST) {
    const winner = best
    const parent = [...weights.keys()].find(({ children }) => children.includes(winner))
    const beside = (parent?.children ?? [winner]).filter((child): child is Element => {
      if (typeof child === 'string') return false
      if (child === winner) return true
      const weight = weights.get(child)
      if (weight === undefined) return false
      if (points(weight) >= Math.max(10, most * 0.2)) return true
      return child.tag === 'p' && weight.length > 80 && weight.linked / weight.length < 0.25
    })
    return { how: 'article', elements: beside }
  }
  return { how: 'fallback', elements: [bodyOf(root)] }
}

function bodyOf(root: Element): Element {
  const all = [...descendants(root)]
  const main = all.find(({ tag, attributes }) => tag === 'main' || attributes.get('role') === 'main')
  const chosen = main ?? all.find(({ tag }) => tag === 'article')
  if (chosen !== undefined && textOf(chosen).trim().length >= LEAST / 4) return chosen
  return all.find(({ tag }) => tag === 'body') ?? root
}

/** Whether an element is left out, and whether because people are not to see it. */
export function isDropped(element: Element): 'seen' | 'furniture' | 'hidden' {
  const { tag, attributes } = element
  if (isHidden(attributes)) return NEVER_TEXT.split(' ').includes(tag) ? 'furniture' : 'hidden'
  return DROPPED.has(tag) || holdsComments(attributes) ? 'furniture' : 'seen'
}

/** What readers have written below an article. */
function holdsComments(attributes: ReadonlyMap<string, string>): boolean {
  return [...wordsOf(attributes, 'id'), ...wordsOf(attributes, 'class')].some((word) => COMMENTS.has(word))
}

function wordsOf(attributes: ReadonlyMap<string, string>, name: string): readonly string[] {
  return attributes.get(name)?.toLowerCase().split(/\s+/) ?? []
}

function isHidden(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.has('hidden')) return true
  // Only a screen reader says it, and a model reads it.
  if (wordsOf(attributes, 'class').some((word) => OFF_SCREEN.has(word))) return true
  const style = attributes.get('style')?.toLowerCase().replaceAll(/\s/g, '') ?? ''
  return /display:none|visibility:hidden|font-size:0(?![.\d]*[1-9])|opacity:0(?![.\d]*[1-9])|text-indent:-\d{3}/.test(
    style,
  )
}

function weigh(element: Element, above: readonly Element[], weights: Map<Element, Weight>): Weight {
  const weight: Weight = { length: 0, linked: 0, score: 0 }
  weights.set(element, weight)
  const line = [element, ...above.slice(0, 2)]
  let own = ''
  for (const child of element.children) {
    if (typeof child === 'string') {
      own += child
      weight.length += child.trim().length
    } else if (isDropped(child) === 'seen') {
      const inner = weigh(child, line, weights)
      weight.length += inner.length
      weight.linked += child.tag === 'a' ? inner.length : inner.linked
    }
  }
  if (HOLDERS.has(element.tag) && weight.length >= 25) {
    const commas = Math.min(10, own.split(/[,،、，]/).length - 1)
    const worth = 1 + commas + Math.min(3, weight.length / 100)
    for (const [place, holder] of above.slice(0, 3).entries()) {
      const each = weights.get(holder)
      if (each !== undefined) each.score += (worth + bonus(holder)) / (place + 1)
    }
  }
  return weight
}

/** A small bonus per paragraph: a class shows the author's intention, not the content. */
function bonus({ tag, attributes }: Element): number {
  const names = `${attributes.get('class') ?? ''} ${attributes.get('id') ?? ''}`
  const meant = (GOOD.test(names) ? 1 : 0) - (BAD.test(names) ? 2 : 0)
  return meant + (tag === 'article' || tag === 'main' ? 1 : 0)
}

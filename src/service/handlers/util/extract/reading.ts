import { createHash } from 'node:crypto'
import { findArticle } from '../../../html/article.ts'
import { writeText } from '../../../html/write-text.ts'
import { parseHtml } from '../../../html/bounded-parser.ts'
import { decodePage } from '../../../html/charset.ts'
import { readHead, type Head } from '../../../html/head.ts'
import { parsePage } from '../../../html/tree.ts'
import { cutText } from './chunks.ts'

export interface ReadingTask {
  readonly bytes: Uint8Array
  /** The header's whole value. */
  readonly contentType: string
  readonly longest: number
  readonly overlap: number
}

export interface Reading {
  readonly head: Head
  readonly charset: string
  readonly unknownCharset: string | undefined
  readonly extraction: 'article' | 'fallback' | 'plain'
  readonly text: string
  readonly chunks: readonly { readonly start: number; readonly end: number; readonly text: string }[]
  readonly truncated: boolean
  readonly words: number
  readonly links: number
  /** What the page keeps from people: elements that are not shown, characters without width. */
  readonly hidden: string
  readonly comments: string
  readonly sha256: string
}

const MOST_TAGS = 200_000
const MOST_CHARACTERS = 200_000
const MOST_CHUNKS = 200
/** Without width, for another direction, or tags of Unicode: a reader does not see them, a model does. */
export const UNSEEN = /[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu

/** Reads a page: its text in chunks, and its metadata. */
export function readPage({ bytes, contentType, longest, overlap }: ReadingTask): Reading {
  const { text: page, charset, unknown } = decodePage(bytes, contentType)
  const found = isHtml(contentType, page) ? readHtml(page) : readPlain(page)
  const whole = found.text.replaceAll(UNSEEN, '')
  const text = whole.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
  const { chunks, truncated } = cutText(text, { longest, overlap, most: MOST_CHUNKS })
  const unseen = /[\u{e0020}-\u{e007e}]/u.test(found.text)
  return {
    ...found,
    charset,
    unknownCharset: unknown,
    text,
    chunks,
    truncated: truncated || text.length < whole.length,
    words: countWords(text),
    hidden: unseen ? `${found.hidden}\n${spelledOut(found.text)}`.trim() : found.hidden,
    sha256: createHash('sha256').update(text).digest('hex'),
  }
}

type Found = Pick<Reading, 'head' | 'extraction' | 'text' | 'links' | 'hidden' | 'comments'>

const NO_HEAD: Head = {
  title: null,
  description: null,
  byline: null,
  site_name: null,
  lang: null,
  published_at: null,
  canonical: null,
  generator: null,
}

export function isHtml(contentType: string, text: string): boolean {
  const essence = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  return essence === '' ? /^\s*</.test(text) : essence === 'text/html' || essence === 'application/xhtml+xml'
}

function readHtml(page: string): Found {
  if (page.split('<', MOST_TAGS + 2).length > MOST_TAGS + 1) return strip(page)
  const { root, comments } = parsePage(page)
  const article = findArticle(root)
  const { text, links } = writeText(article.elements)
  const { hidden } = writeText([root])
  return {
    head: readHead(root),
    extraction: article.how,
    text,
    links,
    hidden,
    comments: comments.join('\n').trim(),
  }
}

const SKIPPED: ReadonlySet<string> = new Set(['script', 'style', 'title', 'textarea'])

/** A page of more tags than text: without a tree, all that is not script or style. */
function strip(page: string): Found {
  const parts: string[] = []
  let skipping: string | undefined
  let links = 0
  parseHtml(page, {
    onopentagname: (tag) => {
      if (SKIPPED.has(tag)) skipping = tag
      if (tag === 'a') links += 1
      parts.push(' ')
    },
    onclosetag: (tag) => {
      if (tag === skipping) skipping = undefined
      parts.push(' ')
    },
    ontext: (text) => {
      if (skipping === undefined) parts.push(text)
    },
  })
  const text = parts
    .join('')
    .replaceAll(/[ \t\r\f]+/g, ' ')
    .replaceAll(/\s*\n\s*/g, '\n\n')
    .trim()
  return { head: NO_HEAD, extraction: 'plain', text, links, hidden: '', comments: '' }
}

function readPlain(page: string): Found {
  const text = page
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/[ \t]+\n/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
  return { head: NO_HEAD, extraction: 'plain', text, links: 0, hidden: '', comments: '' }
}

/** Scripts without spaces are counted by character; a segmenter takes minutes for what this does in milliseconds. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu

function countWords(text: string): number {
  return text.match(WORD)?.length ?? 0
}

/** Unicode's tags are ASCII in disguise: what they spell is what a model may read. */
function spelledOut(text: string): string {
  return Array.from(text.matchAll(/[\u{e0020}-\u{e007e}]/gu), ([tag]) =>
    String.fromCodePoint((tag.codePointAt(0) ?? 0xe0020) - 0xe0000),
  ).join('')
}

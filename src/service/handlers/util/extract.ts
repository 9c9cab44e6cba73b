import {
  Failure,
  InvalidParameter,
  isJsonObject,
  type Json,
  type JsonObject,
  type Warning,
} from 'ratecard/handler'
import type { Egress } from '../../sources/egress.ts'
import { answerOf, type Reply } from '../../sources/egress/outcome.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { READABLE_TYPES, readReply } from './extract/page.ts'
import type { Reading } from './extract/reading.ts'
import { screenPage } from './extract/page-screening.ts'

const MEASURE = { bytes: 5 * 1024 * 1024, beyond: 'refuse' } as const
const HIDDEN_SHOWN = 300
const FIRST_SHOWN = 300
const SAMPLED = ['url', 'final_url', 'title', 'excerpt', 'lang', 'word_count', 'char_count', 'chunk_count']

/** The main text of a page that a caller names, in chunks, with what the page hides from people. */
export function extract(egress: Egress): HandlerWithPreview<'util/extract'> {
  return {
    run: async ({ url, max_chars, overlap }, context) => {
      if (overlap >= max_chars) throw new InvalidParameter('overlap', 'overlap must be less than max_chars')
      const request = { accept: READABLE_TYPES, measure: MEASURE, robots: 'honour' } as const
      const reply = answerOf(await egress.get(url, request, context.signal), 'url')
      const reading = await readReply(reply, { longest: max_chars, overlap }, context.signal)
      refuseUnreadable(reading)
      const { flags, warnings } = await screenPage(reading, context)
      return {
        source: [{ name: 'The page itself', url: reply.url.href }],
        warnings: [...warnings, ...charsetWarning(reading)],
        body: bodyOf(url, reply, reading, flags),
      }
    },
    preview: (body) => ({
      ...Object.fromEntries(SAMPLED.flatMap((key) => (key in body ? [[key, body[key] ?? null]] : []))),
      chunks: Array.isArray(body['chunks']) ? body['chunks'].slice(0, 1).map(shorten) : [],
    }),
  }
}

/** What gates in front of pages say, in their titles or instead of a text. */
const GATE =
  /^just a moment\b|attention required!|access (?:to this page has been )?denied|verify(?:ing)? (?:that )?you are (?:a )?human|are you (?:a )?(?:robot|human)|enable javascript and cookies|checking your browser|ddos protection by|pardon our interruption|complete the captcha|unusual traffic from your/i
/** A gate is short; a page that writes about gates is not. */
const LONGEST_GATE = 150

/** Throws for a page without a text to sell: nothing is charged for it. */
function refuseUnreadable({ head, chunks, text, words }: Reading): void {
  if (words <= LONGEST_GATE && GATE.test(`${head.title ?? ''}\n${text}`))
    throw new Failure('page_unreadable', 'The site shows a check for robots in place of the page')
  if (chunks.length === 0 || words === 0)
    throw new Failure('page_unreadable', 'The page holds no text; it may need JavaScript to show one')
}

function charsetWarning({ unknownCharset }: Reading): readonly Warning[] {
  if (unknownCharset === undefined) return []
  const message = `the page names the character set ${unknownCharset}, which is unknown; it was read as UTF-8`
  return [{ code: 'unknown_charset', message }]
}

function bodyOf(url: string, reply: Reply, reading: Reading, flags: readonly string[]): JsonObject {
  const { head, text, chunks, hidden } = reading
  return {
    url,
    final_url: reply.url.href,
    status_code: reply.status,
    content_type: reply.header('content-type')?.slice(0, 200) ?? null,
    charset: reading.charset,
    title: head.title,
    byline: head.byline,
    site_name: head.site_name,
    lang: head.lang,
    published_at: head.published_at,
    excerpt: head.description ?? (chunks[0] === undefined ? null : chunks[0].text.slice(0, 200)),
    word_count: reading.words,
    char_count: text.length,
    token_estimate: estimate(text),
    extraction: reading.extraction,
    chunks: chunks.map((chunk, index) => ({ index, ...chunk, token_estimate: estimate(chunk.text) })),
    chunk_count: chunks.length,
    truncated: reading.truncated,
    links_count: reading.links,
    injection_flags: [...flags],
    hidden_text: hidden === '' ? null : { chars: hidden.length, excerpt: hidden.slice(0, HIDDEN_SHOWN) },
    content_sha256: reading.sha256,
  }
}

/** Four bytes a token: right within a third for most languages, and no tokenizer is needed. */
function estimate(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4)
}

function shorten(chunk: Json): Json {
  if (!isJsonObject(chunk) || typeof chunk['text'] !== 'string') return chunk
  return { ...chunk, text: chunk['text'].slice(0, FIRST_SHOWN) }
}

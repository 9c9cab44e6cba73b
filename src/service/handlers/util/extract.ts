import {
  Failure,
  InvalidParameter,
  isJsonObject,
  type Context,
  type Json,
  type JsonObject,
  type Warning,
} from '../../../engine/index.ts'
import type { Egress } from '../../sources/egress.ts'
import { answerOf, type Reply } from '../../sources/egress/outcome.ts'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { OVERRUN } from '../../threads/thread.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { isHtml, type Reading, type ReadingTask } from './extract/reading.ts'

const ACCEPT = 'text/html, application/xhtml+xml, text/markdown, text/plain;q=0.8'
const READABLE: ReadonlySet<string> = new Set([
  'text/html',
  'application/xhtml+xml',
  'text/plain',
  'text/markdown',
])
const MEASURE = { bytes: 5 * 1024 * 1024, beyond: 'refuse' } as const
/** What the guard takes. */
const SCREENED = 20_000
const HIDDEN_SHOWN = 300
const FIRST_SHOWN = 300
const SAMPLED = ['url', 'final_url', 'title', 'excerpt', 'lang', 'word_count', 'char_count', 'chunk_count']

const pool = new ThreadPool<ReadingTask, Reading>(entryBeside(import.meta.url, './extract/worker'), {
  threads: 2,
  milliseconds: 3000,
  megabytes: 192,
})

/** The main text of a page that a caller names, in chunks, with what the page hides from people. */
export function extract(egress: Egress): HandlerWithPreview<'util/extract'> {
  return {
    run: async ({ url, max_chars, overlap }, context) => {
      if (overlap >= max_chars) throw new InvalidParameter('overlap', 'overlap must be less than max_chars')
      const request = { accept: ACCEPT, measure: MEASURE, robots: 'honour' } as const
      const reply = answerOf(await egress.get(url, request, context.signal), 'url')
      const contentType = readableType(reply)
      const task = { bytes: reply.body, contentType, longest: max_chars, overlap }
      const reading = await pool.perform(task, context.signal)
      if (reading === OVERRUN)
        throw new InvalidParameter('url', 'url leads to a page that is too complex to read within 3 seconds')
      const { flags, warnings } = await screen(reading, context)
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

/** The content type, or a throw when the site has no page there or one that is not text. */
function readableType({ status, header, body }: Reply): string {
  if (status === 404 || status === 410)
    throw new Failure('not_found', 'There is no page at the address in url')
  if (status < 200 || status > 299) {
    const extra = { upstream_status: status }
    throw new Failure('source_error', `The site answered with status ${status}`, { extra })
  }
  const type = header('content-type') ?? ''
  const essence = type.split(';')[0]?.trim().toLowerCase() ?? ''
  const start = Buffer.from(body.subarray(0, 1024)).toString('latin1')
  if (!READABLE.has(essence) && !(essence === '' && isHtml('', start))) {
    const shown = /^[\w.+-]{1,50}\/[\w.+-]{1,50}$/.test(essence) ? essence : 'unknown'
    throw new InvalidParameter('url', `content type ${shown} is not supported`, { content_type: shown })
  }
  return type
}

/** What the guard of the same catalog finds in the text and in what is hidden; without a guard, nothing is said. */
async function screen(
  { text, hidden, comments }: Reading,
  { ask }: Context,
): Promise<{ readonly flags: readonly string[]; readonly warnings: readonly Warning[] }> {
  const own = hidden === '' ? [] : ['hidden_text']
  const unseen = `${hidden}\n${comments}`.slice(0, SCREENED / 2)
  const screened = `${unseen}\n${text}`
    .trim()
    .slice(0, SCREENED)
    .replace(/[\ud800-\udbff]$/, '')
  if (screened === '') return { flags: own, warnings: [] }
  try {
    const { answer } = await ask('util/guard', { text: screened })
    return { flags: [...new Set([...own, ...categoriesOf(answer.body)])], warnings: [] }
  } catch (fault) {
    if (!(fault instanceof Failure)) throw fault
    const message = 'the text was not screened for prompt injection'
    return { flags: own, warnings: [{ code: 'not_screened', message }] }
  }
}

function categoriesOf({ injection }: JsonObject): string[] {
  const findings = isJsonObject(injection) ? injection['findings'] : undefined
  if (!Array.isArray(findings)) return []
  return findings.flatMap((finding: Json) => {
    const category = isJsonObject(finding) ? finding['category'] : undefined
    return typeof category === 'string' ? [category] : []
  })
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

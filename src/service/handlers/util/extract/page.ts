import { Failure, InvalidParameter } from 'ratecard/handler'
import type { Reply } from '../../../sources/egress/outcome.ts'
import { entryBeside, ThreadPool } from '../../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../../threads/thread.ts'
import { isHtml, type Reading, type ReadingTask } from './reading.ts'

/** For an Accept header. */
export const READABLE_TYPES = 'text/html, application/xhtml+xml, text/markdown, text/plain;q=0.8'
const READABLE: ReadonlySet<string> = new Set([
  'text/html',
  'application/xhtml+xml',
  'text/plain',
  'text/markdown',
])

/** One for the process. */
const pool = new ThreadPool<ReadingTask, Reading>(entryBeside(import.meta.url, './worker'), {
  threads: 2,
  milliseconds: 3000,
  megabytes: 192,
})

/** Reads the response of a site. Throws errors for the caller who named the address in `url`. */
export async function readReply(
  reply: Reply,
  chunks: Pick<ReadingTask, 'longest' | 'overlap'>,
  signal: AbortSignal,
): Promise<Reading> {
  const contentType = readableType(reply)
  const reading = await pool.perform({ bytes: reply.body, contentType, ...chunks }, signal)
  if (reading !== LIMIT_EXCEEDED) return reading
  throw new InvalidParameter('url', 'url leads to a page that is too complex to read within 3 seconds')
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

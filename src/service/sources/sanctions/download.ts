import { beforeDeadline, DeadlinePassed } from '../deadline.ts'
import { discard } from '../json-body.ts'
import type { Reply, Runtime } from '../source-runtime.ts'
import type { ListFile } from './list-reader.ts'

/** What a publisher said of the file we have, so that it need not send the same again. */
export interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

export type Download =
  | { readonly kind: 'fetched'; readonly file: ListFile; readonly validators: Validators }
  | { readonly kind: 'unchanged' }
  /** `reason` goes on after the list's name. */
  | { readonly kind: 'failed'; readonly reason: string }

const TIMEOUT_MS = 120_000
const MAX_BYTES = 200 * 1024 * 1024
const MAX_REDIRECTS = 5

/** Told how many bytes have come. */
export type Progress = (bytes: number) => void

/** Fetches a list; with OFAC's SDN.CSV and CONS_PRIM.CSV also the aliases from next to it. */
export async function download(
  url: string,
  held: Validators | undefined,
  runtime: Runtime,
  progress: Progress,
): Promise<Download> {
  try {
    return await beforeDeadline(new AbortController().signal, TIMEOUT_MS, async (signal) => {
      const reply = await follow(new URL(url), held, runtime, signal)
      if (reply.status === 304) return { kind: 'unchanged' }
      const main = await bodyOf(reply, progress)
      const beside = url.replace(/(?:SDN|(?<=CONS_)PRIM)(?=\.csv$)/i, (name) =>
        name === name.toLowerCase() ? 'alt' : 'ALT',
      )
      const aliases =
        beside === url
          ? undefined
          : await bodyOf(await follow(new URL(beside), undefined, runtime, signal), (bytes) =>
              progress(main.length + bytes),
            )
      const { headers } = reply
      const validators = { etag: headers.get('etag'), lastModified: headers.get('last-modified') }
      return { kind: 'fetched', file: { main, aliases }, validators }
    })
  } catch (fault) {
    if (fault instanceof DeadlinePassed)
      return { kind: 'failed', reason: `did not come within ${TIMEOUT_MS / 1000} seconds` }
    if (fault instanceof DownloadFault) return { kind: 'failed', reason: fault.message }
    // The library's own text may hold the address, and the address a token.
    return { kind: 'failed', reason: 'could not be fetched: its address cannot be reached, or broke off' }
  }
}

class DownloadFault extends Error {}

/** Publishers send on to signed addresses elsewhere; never from https to http. */
async function follow(
  first: URL,
  held: Validators | undefined,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Reply> {
  const headers: Record<string, string> = { accept: '*/*' }
  if (held?.etag) headers['if-none-match'] = held.etag
  if (held?.lastModified) headers['if-modified-since'] = held.lastModified
  const isConditional = 'if-none-match' in headers || 'if-modified-since' in headers
  let url = first
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const reply = await runtime.fetch(url, { signal, headers, redirect: 'manual' })
    if (reply.status === 200 || (reply.status === 304 && isConditional)) return reply
    await discard(reply.body)
    const location = reply.headers.get('location')
    if (reply.status < 300 || reply.status > 399 || location === null || !URL.canParse(location, url.href))
      throw new DownloadFault(`could not be fetched: status ${reply.status}`)
    url = new URL(location, url)
    if (url.protocol !== 'https:' && url.protocol !== first.protocol)
      throw new DownloadFault('could not be fetched: it was sent on to an address without https')
  }
  throw new DownloadFault('could not be fetched: it was sent on too often')
}

async function bodyOf({ body }: Reply, progress: Progress): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new DownloadFault(`is larger than ${MAX_BYTES / 1024 / 1024} MB`)
    chunks.push(chunk)
    progress(bytes)
  }
  return Buffer.concat(chunks)
}

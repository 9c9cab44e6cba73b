import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listening } from './http.ts'

/** A request as a site behind a catalog has got it. */
export interface Arrived {
  readonly method: string
  /** The target as it was sent. */
  readonly target: string
  /** Values of each header by its lower-case name. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly body: string
}

export interface Site {
  readonly url: string
  /** Requests with whole bodies, the first one first. */
  readonly arrived: readonly Arrived[]
  /** Answers in place of the usual answer from now on, at one path. */
  readonly at: (path: string, answer: (request: IncomingMessage, response: ServerResponse) => void) => void
  readonly close: () => Promise<void>
}

/** The usual answer, so that a test sees who has answered. */
export const FROM_SITE = 'from the site'

/** A site that keeps what it gets, and sells through the catalog of `frontCatalog` to its proxy. */
export async function openSite(): Promise<Site> {
  const arrived: Arrived[] = []
  const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: target = '' } = request
    const answer = answers.get(target.split('?')[0] ?? '')
    if (answer !== undefined) return answer(request, response)
    const body = (await buffer(request)).toString('latin1')
    arrived.push({ method, target, headers: headersOf(request.rawHeaders), body })
    const sold = SOLD[`${method} ${target.split('?')[0] ?? ''}`]
    if (sold !== undefined) response.setHeader('Content-Type', 'application/json').end(JSON.stringify(sold))
    else response.setHeader('Content-Type', 'text/plain').end(FROM_SITE)
  }
  const { url, close } = await listening(
    createServer((request, response) => {
      // Clients that leave are part of the tests.
      take(request, response).catch(() => response.destroy())
    }),
  )
  return { url, arrived, at: (path, answer) => answers.set(path, answer), close }
}

const SOLD: Readonly<Record<string, object>> = {
  'POST /v1/translate': { text: 'Hallo' },
  'GET /search': { found: 1 },
  'GET /v1/items/a1': { item: 'a1' },
  'GET /v1/ping': { pong: true },
}

/** A catalog of three paid routes and a free one in front of a site that has much more. */
export function frontCatalog(site: string, more = ''): string {
  return `catalog: 1
service: { name: Front, version: '1.0.0', description: Sells parts of a site }
payments: { currency: USD, x402: { networks: [base] } }
passthrough: ${site}
defaults: { upstream: '${site}' }
routes:
  POST /v1/translate:
    price: 0.01
    summary: Translates a text
    upstream: /v1/translate
    body: { properties: { text: { type: string, required: true, example: Hello } } }
    example: { text: Hallo }
  /search:
    price: 0.002
    summary: Searches
    upstream: /search
    parameters: { q: { type: string, example: tea } }
    example: { found: 1 }
  /v1/items/{id}:
    price: 0.001
    summary: Shows an item
    upstream: /v1/items/{id}
    parameters: { id: { type: string, required: true, example: a1 } }
    example: { item: a1 }
  /v1/ping:
    price: free
    summary: Answers
    upstream: /v1/ping
    example: { pong: true }
${more}`
}

function headersOf(raw: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {}
  for (let at = 0; at + 1 < raw.length; at += 2)
    (headers[(raw[at] ?? '').toLowerCase()] ??= []).push(raw[at + 1] ?? '')
  return headers
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listening } from './http.ts'
import { json } from 'node:stream/consumers'

/** The upstream of `fixtures/payments`: counts the runs, and lets a test decide how each one ends. */
export interface CountingUpstream {
  readonly url: string
  /** Runs begun so far. */
  readonly runs: () => number
  /** Awaited in every run from now on before it answers; a throw fails the work. */
  readonly during: (event: () => Promise<void>) => void
  readonly close: () => Promise<void>
}

export async function openCountingUpstream(): Promise<CountingUpstream> {
  let runs = 0
  let event: () => Promise<void> = async () => {}
  const server = createServer((_, response) => {
    runs += 1
    const run = runs
    event().then(
      () => response.setHeader('content-type', 'application/json').end(JSON.stringify(run)),
      () => response.writeHead(500).end(),
    )
  })
  const { url, close } = await listening(server)
  return { url, close, runs: () => runs, during: (next) => (event = next) }
}

/** One call of the upstream, which the test answers as it likes. */
export interface Run {
  /** What the buyer has sent, the same for each run of one purchase. */
  readonly n: string
  readonly key: string
  readonly response: ServerResponse
  /** Sends the headers of a stream. */
  readonly begin: () => void
  /** Sends one event; resolves when its bytes have left. */
  readonly event: (data: string) => Promise<void>
  readonly end: () => void
  /** Breaks the connection off. */
  readonly breakOff: () => void
}

interface StreamUpstream {
  readonly url: string
  /** Every run that was asked for, in order. */
  readonly runs: (n: string) => readonly Run[]
  /** Resolves to the `count`th run of `n`, when it comes. */
  readonly next: (n: string, count: number) => Promise<Run>
  readonly close: () => Promise<void>
}

/** An upstream that streams, and keeps a log of its own. */
export async function startStreamUpstream(): Promise<StreamUpstream> {
  const log: Run[] = []
  const waiting = new Set<() => void>()
  const runs = (n: string): readonly Run[] => log.filter((run) => run.n === n)
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://upstream')
    const sent = request.method === 'GET' ? {} : await json(request)
    const { n = searchParams.get('n') ?? '' } = sent as { readonly n?: string }
    const type = pathname === '/lines' ? 'application/x-ndjson' : 'text/event-stream; charset=utf-8'
    log.push({
      n,
      key: String(request.headers['idempotency-key'] ?? ''),
      response,
      begin: () => {
        response.writeHead(200, { 'content-type': type, 'x-model': 'small' }).flushHeaders()
      },
      event: (data) =>
        new Promise((resolve) => {
          response.write(pathname === '/lines' ? `${data}\n` : `data: ${data}\n\n`, () => resolve())
        }),
      end: () => response.end(),
      breakOff: () => response.destroy(),
    })
    for (const look of waiting) look()
  }
  const { url, close } = await listening(createServer((request, response) => void take(request, response)))
  return {
    url,
    runs,
    next: (n, count) =>
      new Promise((resolve) => {
        const look = (): void => {
          const run = runs(n)[count - 1]
          if (run === undefined) return
          waiting.delete(look)
          resolve(run)
        }
        waiting.add(look)
        look()
      }),
    close,
  }
}

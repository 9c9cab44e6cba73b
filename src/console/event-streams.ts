import type { ServerResponse } from 'node:http'

/** Pages that are open at once; more get no news. */
const MOST_STREAMS = 20

/** Server-sent events to the pages that are open. */
export class EventStreams {
  readonly #open = new Set<ServerResponse>()

  get count(): number {
    return this.#open.size
  }

  open(response: ServerResponse): void {
    if (this.#open.size >= MOST_STREAMS) {
      response.writeHead(503, { 'Content-Type': 'text/plain' }).end('too many pages are open')
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('retry: 3000\n\n')
    this.#open.add(response)
    response.once('close', () => this.#open.delete(response))
  }

  send(event: string, data: unknown): void {
    const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
    // A page that does not read is not waited for.
    for (const response of this.#open) if (response.writableLength < LARGEST_BACKLOG) response.write(text)
  }
}

const LARGEST_BACKLOG = 256 * 1024

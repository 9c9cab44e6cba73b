import { createServer, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request of a webhook, as it came. */
export interface SentEvent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A receiver of webhooks; `take` answers each request, or leaves it without an answer. */
export function createReceiver(take: (event: SentEvent, response: ServerResponse) => void): Server {
  return createServer((request, response) => {
    void text(request).then((body) => {
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
      take({ headers: Object.fromEntries(headers), body }, response)
    })
  })
}

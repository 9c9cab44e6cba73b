import { once } from 'node:events'
import { request as sendRequest, type RequestListener } from 'node:http'
import { Server as NetServer } from 'node:net'
import { pipeline } from 'node:stream'
import type { HttpServer } from './server.ts'

/**
 * Leaves the port to another process that listens on it. Takes no more connections; a request that still comes on an open one
 * is passed on, since closing that connection could meet the request halfway. Resolves when all requests are answered that
 * came before; `closed` when all connections are closed, by their clients or when they have been idle for as long as the
 * server keeps them.
 */
export async function handOver(
  server: HttpServer,
  port: number,
  host: string,
): Promise<{ readonly closed: Promise<unknown> }> {
  const closed = once(server, 'close')
  const before = Array.from(server.unanswered)
  for (const response of before) if (!response.headersSent) response.setHeader('Connection', 'close')
  server.answer = passOn(port, WILDCARDS.get(host) ?? host)
  const busy = new Set(before.map(({ socket }) => socket))
  for (const socket of server.sockets) if (!busy.has(socket)) socket.setTimeout(server.keepAliveTimeout)
  // The `close` of an HTTP server would also close idle connections.
  NetServer.prototype.close.call(server)
  await Promise.all(before.filter(({ closed }) => !closed).map((response) => once(response, 'close')))
  return { closed }
}

const WILDCARDS: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])

function passOn(port: number, host: string): RequestListener {
  return (request, response) => {
    const { method, url: path } = request
    const headers = { ...request.headers, connection: 'close' }
    const passed = sendRequest({ port, host, method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, response, () => undefined)
    })
    passed.on('error', () => response.destroy())
    response.once('close', () => passed.destroy())
    pipeline(request, passed, () => undefined)
  }
}

/**
 * Accepts no more requests and resolves when pending ones are answered, at the latest after `patience` milliseconds.
 * Idle connections are closed at once: browsers keep some open.
 */
export function closeServer(server: HttpServer, patience: number): Promise<void> {
  return new Promise((resolve) => {
    const closeSpare = (): void => {
      if (server.unanswered.size === 0) server.closeAllConnections()
      else server.closeIdleConnections()
    }
    const sweep = setInterval(closeSpare, 20)
    const limit = setTimeout(() => server.closeAllConnections(), patience)
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(limit)
      resolve()
    })
    closeSpare()
  })
}

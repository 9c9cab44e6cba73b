import { createServer, STATUS_CODES, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type Koa from 'koa'
import type { ErrorCode } from '../errors.ts'
import { problem } from './reply.ts'

/** All headers with the URL: texts travel in the query, and Node's 16 KB would refuse them. */
const LARGEST_HEADERS = 65_536

/** An HTTP server that says it is starting until an application is attached; requests that never reach one get answers too. */
export function createHttpServer(): Server {
  const server = createServer({
    maxHeaderSize: LARGEST_HEADERS,
    requestTimeout: 30_000,
    headersTimeout: 15_000,
  })
  server.on('request', (_, response) => {
    response.writeHead(503, { 'Retry-After': '1' }).end()
  })
  server.on('clientError', (fault: NodeJS.ErrnoException, socket: Socket) => {
    if (fault.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    refuse(socket, fault.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : 'request_malformed')
  })
  return server
}

/** From now on the application answers. */
export function attach(server: Server, app: Koa): void {
  const answer = app.callback()
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    void answer(request, response)
  })
}

function refuse(socket: Socket, code: ErrorCode): void {
  const detail =
    code === 'headers_too_large' ? 'URL and headers are larger than 64 KB' : 'this is not an HTTP request'
  const { status, headers, body } = problem(code, detail, { charged: 'no' })
  const lines = Object.entries({
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  })
  const head = lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n\r\n${body}`)
}

/** Resolves to the port once the server listens. */
export function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

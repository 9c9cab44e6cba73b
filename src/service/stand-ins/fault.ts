import type { ServerResponse } from 'node:http'
import type { StandInResponse } from './stand-in.ts'

/** Ways in which sources fail. `hang` and `drip` never end by themselves; `huge` is the good answer and 3 MB of white space. */
export type Fault =
  | 'html'
  | 'null429'
  | '429'
  | '429-reset'
  | 'empty'
  | 'truncated'
  | 'reset'
  | 'hang'
  | 'drip'
  | 'huge'
  | 'redirect'
  | 'drift'
  | '400'
  | '401'
  | '401-once'
  | '403'
  | '404'
  | '500'
  | '500-once'

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const PAGE = '<!doctype html><title>Sorry</title><p>Please come back later.'

/** Answers with the fault instead of the requested answer. */
export function fail(fault: Fault, { body }: StandInResponse, response: ServerResponse): void {
  switch (fault) {
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html; charset=UTF-8' }).end(PAGE)
      return
    case 'null429':
      response.writeHead(429, JSON_TYPE).end('null')
      return
    case '429':
      response.writeHead(429, { ...JSON_TYPE, 'retry-after': '7' }).end('null')
      return
    case '429-reset': {
      const reset = String(Math.floor(Date.now() / 1000) + 40)
      response.writeHead(429, { ...JSON_TYPE, 'ratelimit-reset': reset }).end('{"status":429}')
      return
    }
    case 'empty':
      response.writeHead(200, JSON_TYPE).end()
      return
    case 'truncated':
      response.writeHead(200, JSON_TYPE).end(body.slice(0, body.length / 2))
      return
    case 'reset':
      response.writeHead(200, { ...JSON_TYPE, 'content-length': Buffer.byteLength(body) })
      response.write(body.slice(0, body.length / 2), () => response.destroy())
      return
    case 'hang':
      return
    case 'drip': {
      response.writeHead(200, JSON_TYPE)
      const timer = setInterval(() => response.write(' '), 20)
      response.once('close', () => clearInterval(timer))
      return
    }
    case 'huge':
      response.writeHead(200, JSON_TYPE).end(body + ' '.repeat(3 * 1024 * 1024))
      return
    case 'redirect':
      response.writeHead(302, { location: 'https://login.example/' }).end()
      return
    case 'drift':
      response.writeHead(200, JSON_TYPE).end('{"success":2,"message":"moved"}')
      return
    case '400':
    case '401':
    case '401-once':
    case '403':
    case '404':
    case '500':
    case '500-once':
      response.writeHead(Number(fault.slice(0, 3)), { 'content-type': 'text/html' }).end(PAGE)
      return
  }
}

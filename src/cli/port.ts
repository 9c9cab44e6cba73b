import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { type OperatorRoute } from '../engine/http/app.ts'
import { listen } from '../engine/http/server.ts'
import type { Env } from '../env.ts'
import type { Metrics } from './metrics.ts'

/** Listens, or throws a sentence that says what to do about it. */
export async function openPort(server: Server, port: number, host: string): Promise<number> {
  try {
    return await listen(server, port, host)
  } catch (cause) {
    throw new Error(portSentence(codeOf(cause), port, host), { cause })
  }
}

function portSentence(code: string, port: number, host: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use: stop what listens there, or choose another with --port`
    case 'EACCES':
      return `port ${port} needs rights this process does not have: choose one above 1023 with --port`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `HOST ${host} is not an address of this machine`
    default:
      return `cannot listen on ${host}:${port} (${code})`
  }
}

function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : ''
}

const PATH = '/metrics'

/**
 * On the service's own port, for those who send the token; for all others nothing is served at this path. Undefined without a
 * token.
 */
export function metricsRoute(
  { metricsToken: token }: Pick<Env, 'metricsToken'>,
  metrics: Metrics,
): OperatorRoute | undefined {
  if (token === undefined) return undefined
  const wanted = digest(`Bearer ${token}`)
  return (path, { authorization = '' }) =>
    path === PATH && timingSafeEqual(digest(authorization), wanted)
      ? async () => {
          const { type, text } = await metrics.read()
          return { status: 200, headers: { 'Content-Type': type, 'Cache-Control': 'no-store' }, body: text }
        }
      : undefined
}

/** Digests are of one length, as the comparison requires, and do not reveal where two texts differ. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** On a port of their own, which is for the operator to close to others; resolves to what closes it. */
export async function openMetricsPort(
  port: number,
  host: string,
  metrics: Metrics,
): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    if (request.url !== PATH || request.method !== 'GET') return void response.writeHead(404).end()
    metrics.read().then(
      ({ type, text }) => response.writeHead(200, { 'Content-Type': type }).end(text),
      () => response.writeHead(500).end(),
    )
  })
  await listen(server, port, host)
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fail, type Fault } from './fault.ts'
import { answerApi, answerStore } from './gamestore.ts'
import { answerSteamSpy } from './steamspy.ts'
import { answerCrossref, answerDataCite } from './works.ts'
import { answerIgdb } from './igdb.ts'
import { answerModel } from './model.ts'
import { answerSanctions } from './sanctions.ts'
import { answerSearxng } from './searxng.ts'
import type { StandIn, StandInResponse } from './stand-in.ts'
import { answerHelix, answerLogin } from './twitch.ts'

/** The outside sources that have a stand-in, by the first segment of their address here. */
const STAND_INS: Readonly<Record<string, StandIn>> = {
  '/steam-store': answerStore,
  '/steam-api': answerApi,
  '/steamspy': answerSteamSpy,
  '/twitch-id': answerLogin,
  '/twitch-api': answerHelix,
  '/igdb': answerIgdb,
  '/sanctions': answerSanctions,
  '/crossref': answerCrossref,
  '/datacite': answerDataCite,
  '/searxng': answerSearxng,
  '/model': answerModel,
}

const STOOD_IN = [
  'steam-store',
  'steam-api',
  'steamspy',
  'twitch',
  'igdb',
  'ofac',
  'un',
  'crossref',
  'datacite',
  'doi',
  'searxng',
  'language-model',
] as const

export interface StandInsOptions {
  /** What goes wrong, by path below the prefix: `{ '/search/results/': 'html' }`. For tests. */
  readonly faults?: Readonly<Record<string, Fault>>
  /** Changes what is answered as JSON, by prefix and path: `/steam-store/api/appdetails`. For tests. */
  readonly spoil?: (address: string, body: unknown) => unknown
}

export interface StandIns {
  /** Base address: a source's own is this and its prefix, `${url}/steam-store`. */
  readonly url: string
  /** What has a stand-in, by its key under `sources:` in the catalog. */
  readonly sources: readonly string[]
  /** How often each address was asked, by prefix and path: `/steam-store/api/appdetails`. */
  readonly asked: ReadonlyMap<string, number>
  /** How those who asked called themselves. */
  readonly userAgents: ReadonlySet<string>
  readonly stop: () => Promise<void>
}

/** Starts one local server that replaces every outside source: no network, invented data. */
export async function startStandIns({ faults = {}, spoil }: StandInsOptions = {}): Promise<StandIns> {
  const asked = new Map<string, number>()
  const userAgents = new Set<string>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://stand-in')
    const [, prefix = '', path = ''] = /^(\/[^/]*)(.*)$/.exec(url.pathname) ?? []
    const { method = 'GET', headers } = request
    userAgents.add(headers['user-agent'] ?? '')
    const body = await text(request)
    const due = answerSafely(STAND_INS[prefix], { path, query: url.searchParams, method, headers, body })
    const fault = faults[prefix + path] ?? faults[path]
    const before = asked.get(prefix + path) ?? 0
    asked.set(prefix + path, before + 1)
    const isDue = fault === undefined || (fault.endsWith('-once') && before > 0)
    if (isDue && spoil !== undefined && due.status === 200 && /json/.test(due.headers['content-type'] ?? ''))
      send({ ...due, body: JSON.stringify(spoil(prefix + path, JSON.parse(due.body))) }, response)
    else if (isDue) send(due, response)
    else if (fault !== undefined) fail(fault, due, response)
  }
  const server = createServer((request, response) => {
    // Who has gone away while asking needs no answer.
    answer(request, response).catch(() => response.destroy())
  })
  server.listen({ port: 0, host: '127.0.0.1', exclusive: true })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    sources: STOOD_IN,
    asked,
    userAgents,
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function answerSafely(standIn: StandIn | undefined, request: Parameters<StandIn>[0]): StandInResponse {
  try {
    const answer = standIn?.(request)
    return answer ?? { status: 404, headers: { 'content-type': 'text/plain' }, body: 'Not here' }
  } catch {
    return { status: 400, headers: { 'content-type': 'text/plain' }, body: 'Cannot be read' }
  }
}

function send({ status, headers, body }: StandInResponse, response: ServerResponse): void {
  response.writeHead(status, headers).end(body)
}

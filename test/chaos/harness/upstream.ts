import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { listening } from '../../support/http.ts'
import type { SeededRandom } from './seeded-random.ts'

/** The upstream API behind every route, in a process that is never killed: it counts the calls it receives. */
export interface Upstream {
  readonly url: string
  readonly runs: () => number
  /** State of the prepared writes, by public payment id. */
  readonly writes: ReadonlyMap<string, WriteState>
  /** Effects of calls by POST, by idempotency key. */
  readonly effects: ReadonlyMap<string, Effect>
  /** Calls by POST without a key, or with the key of another call. */
  readonly unkeyed: () => number
  readonly close: () => Promise<void>
}

export type WriteState = 'prepared' | 'committed' | 'aborted'

/** Happens once; every later call with its key gets the same answer. */
export interface Effect {
  /** Of the request. */
  readonly body: string
  readonly run: number
  /** Number of requests with its key. */
  readonly requests: number
}

const MAX_DELAY_MS = 150
const FAILURE_RATE = 0.03
/** Events of a stream. */
export const EVENTS = 5

export async function openUpstream(random: SeededRandom): Promise<Upstream> {
  let [runs, unkeyed] = [0, 0]
  const writes = new Map<string, WriteState>()
  const effects = new Map<string, Effect>()
  const work = async (): Promise<number> => {
    runs += 1
    const run = runs
    await delay(random.between(0, MAX_DELAY_MS))
    if (random.chance(FAILURE_RATE)) throw new Error('the upstream fails')
    return run
  }
  const get = async (path: string): Promise<number> => {
    const [, task = '', id = ''] = path.split('/')
    if (task === 'commit' || task === 'abort') {
      // An abort of a write that was never prepared is allowed and does nothing.
      if (writes.has(id)) writes.set(id, task === 'commit' ? 'committed' : 'aborted')
      return 0
    }
    const run = await work()
    if (task === 'prepare') writes.set(id, 'prepared')
    return run
  }
  const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { 'idempotency-key': key } = request.headers
    const body = await text(request)
    const newRun = await work()
    const known = typeof key === 'string' ? effects.get(key) : undefined
    if (typeof key !== 'string' || (known !== undefined && known.body !== body)) unkeyed += 1
    const { run, requests } = known ?? { run: newRun, requests: 0 }
    if (typeof key === 'string') effects.set(key, { body, run, requests: requests + 1 })
    const n = numberIn(body)
    const result = JSON.stringify({ n, run, value: `stored-value-${run}` })
    if (request.url !== '/stream' && request.url !== '/events') {
      response.setHeader('content-type', 'application/json').end(result)
      return
    }
    response.setHeader('content-type', 'text/event-stream')
    for (let event = 1; event <= EVENTS; event += 1) {
      response.write(`data: ${result}\n\n`)
      await delay(random.between(0, MAX_DELAY_MS / EVENTS))
    }
    response.end()
  }
  const server = createServer((request, response) => {
    const responding =
      request.method === 'POST'
        ? post(request, response)
        : get(request.url ?? '').then((run) => {
            response.setHeader('content-type', 'application/json').end(JSON.stringify(run))
          })
    responding.catch(() => response.writeHead(500).end())
  })
  const { url, close } = await listening(server)
  return { url, runs: () => runs, writes, effects, unkeyed: () => unkeyed, close }
}

/** The number of a call: a member of a JSON body, the first word of any other. */
function numberIn(body: string): number {
  if (!body.startsWith('{')) return Number.parseInt(body, 10)
  const { n }: { readonly n: number } = JSON.parse(body)
  return n
}

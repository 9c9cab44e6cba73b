import type { Deadline, RpcTransport } from '../../base/runtime.ts'
import { isJsonObject, type JsonObject } from '../../base/json.ts'

/** An answer of an Ethereum node, or the failure to get one. */
export type RpcAnswer<T> =
  | { readonly kind: 'result'; readonly result: T }
  /** The node refuses the request: its message, for matching only, never for buyers. */
  | {
      readonly kind: 'refused'
      readonly code: number
      readonly message: string
      readonly data: string | undefined
    }
  /** No readable answer: whether the request was executed is unknown. */
  | { readonly kind: 'unreachable' }

export type Refused = Extract<RpcAnswer<never>, { readonly kind: 'refused' }>

type Ask = <T>(
  method: string,
  params: readonly unknown[],
  read: (result: unknown) => T | undefined,
  /** Milliseconds, when less than the default. */
  timeout?: number,
) => Promise<RpcAnswer<T>>

export interface Rpc {
  /** Sends the call together with others that are made in the same turn of the event loop, for calls that only read. */
  readonly ask: Ask
  /** Sends the call in a request of its own: one that changes something, or that takes long, must not delay others. */
  readonly askAlone: Ask
}

interface Request {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

interface Waiting {
  readonly request: Request
  readonly resolve: (response: unknown) => void
}

/** Longer than any healthy node takes. */
const TIMEOUT_MS = 10_000

/** Calls of one batch: nodes refuse long ones. */
const LONGEST_BATCH = 10

/**
 * JSON-RPC over HTTP (https://www.jsonrpc.org/specification), one attempt a call: the caller decides what may be
 * repeated. A node that refuses a batch (section 6) gets each call in a request of its own from then on. The endpoint’s
 * URL, which may hold a key, appears in no result.
 */
export function createRpc(
  url: string,
  call: RpcTransport,
  deadline: Deadline,
  lasting: RegExp = LASTING,
): Rpc {
  let id = 0
  let takesBatches = true
  const waiting = new Map<number, Waiting[]>()

  const requestOf = (method: string, params: readonly unknown[]): Request => {
    id += 1
    return { jsonrpc: '2.0', id, method, params }
  }

  const enqueue = (request: Request, timeout: number): Promise<unknown> =>
    new Promise((resolve) => {
      const others = waiting.get(timeout)
      if (others !== undefined) {
        others.push({ request, resolve })
        return
      }
      waiting.set(timeout, [{ request, resolve }])
      setImmediate(() => {
        const all = waiting.get(timeout) ?? []
        waiting.delete(timeout)
        for (let start = 0; start < all.length; start += LONGEST_BATCH)
          void send(all.slice(start, start + LONGEST_BATCH), timeout)
      })
    })

  const send = async (batch: readonly Waiting[], timeout: number): Promise<void> => {
    const responses =
      batch.length > 1 && takesBatches ? await askTogether(batch, timeout) : await askEach(batch, timeout)
    for (const [place, { resolve }] of batch.entries()) resolve(responses[place])
  }

  const askEach = (batch: readonly Waiting[], timeout: number): Promise<readonly unknown[]> =>
    Promise.all(batch.map(({ request }) => post(url, call, request, deadline(timeout)).then(bodyOf)))

  const askTogether = async (batch: readonly Waiting[], timeout: number): Promise<readonly unknown[]> => {
    const requests = batch.map(({ request }) => request)
    const answer = await post(url, call, requests, deadline(timeout))
    if (answer.kind === 'none') return []
    const responses = inOrder(answer.body, requests)
    if (responses !== undefined) return responses
    const single = await askEach(batch, timeout)
    // Otherwise the node is out of order, and may take batches when it is back.
    if (single.some((body) => isJsonObject(body) && 'result' in body)) takesBatches = false
    return single
  }

  return {
    ask: async (method, params, read, timeout = TIMEOUT_MS) =>
      answerOf(await enqueue(requestOf(method, params), timeout), read, lasting),
    askAlone: async (method, params, read, timeout = TIMEOUT_MS) =>
      answerOf(bodyOf(await post(url, call, requestOf(method, params), deadline(timeout))), read, lasting),
  }
}

type Posted = { readonly kind: 'response'; readonly body: unknown } | { readonly kind: 'none' }

/** The body is undefined when it is no JSON. */
async function post(
  url: string,
  call: RpcTransport,
  body: Request | readonly Request[],
  signal: AbortSignal,
): Promise<Posted> {
  try {
    const response = await call(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })
    const answer = await response.json().catch(() => undefined)
    return signal.aborted ? { kind: 'none' } : { kind: 'response', body: answer }
  } catch {
    return { kind: 'none' }
  }
}

function bodyOf(posted: Posted): unknown {
  return posted.kind === 'response' ? posted.body : undefined
}

/** The responses to these requests, which come in any order; undefined when the node does not take them together. */
function inOrder(body: unknown, requests: readonly Request[]): readonly unknown[] | undefined {
  if (!Array.isArray(body)) return undefined
  const responses = new Map(body.filter(isJsonObject).map((response) => [response['id'], response]))
  if (requests.some(({ id }) => !responses.has(id))) return undefined
  const all = requests.map(({ id }) => responses.get(id))
  return all.some(refusesBatch) ? undefined : all
}

/** Some nodes refuse each call of a batch with a message of its own: "batch size exceeded". */
function refusesBatch(response: JsonObject | undefined): boolean {
  const error = response?.['error']
  const message = isJsonObject(error) ? error['message'] : undefined
  return typeof message === 'string' && /batch/i.test(message)
}

function answerOf<T>(body: unknown, read: (result: unknown) => T | undefined, lasting: RegExp): RpcAnswer<T> {
  if (!isJsonObject(body)) return { kind: 'unreachable' }
  if (isJsonObject(body['error'])) return refused(body['error'], lasting)
  if (!('result' in body)) return { kind: 'unreachable' }
  const result = read(body['result'])
  return result === undefined ? { kind: 'unreachable' } : { kind: 'result', result }
}

/** Error codes of temporary refusals: rate limits and overload. */
const PASSING: ReadonlySet<number> = new Set([-32005, -32016, -32603, 429])

/** Permanent errors with the same codes, such as "block range too large" and "execution reverted". */
const LASTING = /revert|range/i

function refused(
  { code: number, message: text, data: bytes }: JsonObject,
  lasting: RegExp,
): RpcAnswer<never> {
  const code = typeof number === 'number' ? number : 0
  const message = typeof text === 'string' ? text : ''
  const data = typeof bytes === 'string' ? bytes : undefined
  if (PASSING.has(code) && data === undefined && !lasting.test(message)) return { kind: 'unreachable' }
  return { kind: 'refused', code, message, data }
}

/** Nodes report "execution reverted" with code 3 or with data; every other error is the node's, not the payment's. */
export function isRevert(answer: RpcAnswer<unknown>): answer is Refused {
  if (answer.kind !== 'refused') return false
  return answer.code === 3 || answer.data !== undefined || /revert/i.test(answer.message)
}

/** What an Ethereum node answered, or that it could not be asked. */
export type RpcAnswer<T> =
  | { readonly kind: 'result'; readonly result: T }
  /** The node has understood and refuses: its own words, for matching, never for buyers. */
  | {
      readonly kind: 'refused'
      readonly code: number
      readonly message: string
      readonly data: string | undefined
    }
  /** No answer, or none that can be read: whether the request was carried out is not known. */
  | { readonly kind: 'unreachable' }

export type Rpc = <T>(
  method: string,
  params: readonly unknown[],
  read: (result: unknown) => T | undefined,
  /** Milliseconds, when it is less than what every request may take. */
  timeout?: number,
) => Promise<RpcAnswer<T>>

/** Sends one request; `fetch` is one. Rejects when there is no answer. */
export type Caller = (
  url: string,
  request: {
    readonly method: 'POST'
    readonly headers: Record<string, string>
    readonly body: string
    readonly signal: AbortSignal
  },
) => Promise<{ json(): Promise<unknown> }>

/** Slower than any healthy node. */
const TIMEOUT_MS = 10_000

/**
 * JSON-RPC over HTTP, one attempt a call: what may be repeated is decided by who calls. The endpoint's URL, which may
 * hold a key, appears in no result.
 */
export function createRpc(url: string, call: Caller): Rpc {
  let id = 0
  return async (method, params, read, timeout = TIMEOUT_MS) => {
    id += 1
    const body = await post(url, call, JSON.stringify({ jsonrpc: '2.0', id, method, params }), timeout)
    if (typeof body !== 'object' || body === null) return { kind: 'unreachable' }
    if ('error' in body && typeof body.error === 'object' && body.error !== null) return refused(body.error)
    if (!('result' in body)) return { kind: 'unreachable' }
    const result = read(body.result)
    return result === undefined ? { kind: 'unreachable' } : { kind: 'result', result }
  }
}

async function post(url: string, call: Caller, body: string, timeout: number): Promise<unknown> {
  try {
    const response = await call(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(timeout),
    })
    return await response.json()
  } catch {
    return undefined
  }
}

/** Codes that say "not now" rather than "no": rate limits and overload. */
const PASSING: ReadonlySet<number> = new Set([-32005, -32016, -32603, 429])
/** Said under the same codes, and true however often one asks: "block range too large", "execution reverted". */
const LASTING = /revert|range/i

function refused(error: object): RpcAnswer<never> {
  const code = 'code' in error && typeof error.code === 'number' ? error.code : 0
  const message = 'message' in error && typeof error.message === 'string' ? error.message : ''
  const data = 'data' in error && typeof error.data === 'string' ? error.data : undefined
  if (PASSING.has(code) && data === undefined && !LASTING.test(message)) return { kind: 'unreachable' }
  return { kind: 'refused', code, message, data }
}

export type Refused = Extract<RpcAnswer<never>, { readonly kind: 'refused' }>

/** A node says "execution reverted" under code 3 or with data; everything else is the node's trouble, not the payment's. */
export function isRevert(answer: RpcAnswer<unknown>): answer is Refused {
  if (answer.kind !== 'refused') return false
  return answer.code === 3 || answer.data !== undefined || /revert/i.test(answer.message)
}

/** Readers of the results the payment path needs. */
export const asHex = (result: unknown): `0x${string}` | undefined =>
  typeof result === 'string' && /^0x[0-9a-fA-F]*$/.test(result) ? `0x${result.slice(2)}` : undefined

export const asQuantity = (result: unknown): bigint | undefined =>
  typeof result === 'string' && /^0x[0-9a-fA-F]+$/.test(result) ? BigInt(result) : undefined

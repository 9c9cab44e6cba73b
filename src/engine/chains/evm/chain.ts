import type { Address } from '../../address.ts'
import { isJsonObject, type JsonObject } from '../../json.ts'
import type { RpcTransport } from '../../runtime.ts'

const asHex = (result: unknown): `0x${string}` | undefined =>
  isHex(result) ? `0x${result.slice(2)}` : undefined

const asQuantity = (result: unknown): bigint | undefined =>
  isHex(result) && result.length > 2 ? BigInt(result) : undefined

export function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value)
}

/** A number or an address as a word of the ABI or an event topic: 64 hexadecimal digits. */
export function word(value: bigint | Address): string {
  return (typeof value === 'bigint' ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, '0')
}

/** An event of a contract, from a block. */
export interface Log {
  readonly address: Address
  readonly topics: readonly `0x${string}`[]
  readonly data: `0x${string}`
  readonly transactionHash: `0x${string}`
  readonly block: bigint
  /** Position in its block. */
  readonly index: bigint
}

export interface TransactionReceipt {
  readonly hash: `0x${string}`
  readonly succeeded: boolean
  readonly block: bigint
  readonly blockHash: string
  /** Wei that the sender paid for gas, including a rollup’s fee for its parent chain when the node reports it. */
  readonly gasCost: bigint
  readonly logs: readonly Log[]
}

/** Logs of one contract: for each topic one value, several alternatives, or null for any. */
export interface LogFilter {
  readonly address: Address
  readonly topics: readonly (`0x${string}` | readonly `0x${string}`[] | null)[]
}

/** Blocks from the first to the last, both included. */
export interface Span {
  readonly from: bigint
  readonly to: bigint
}

export interface Block {
  readonly number: bigint
  readonly hash: string
  /** Seconds since the epoch. */
  readonly timestamp: bigint
  /** Wei for each unit of gas. */
  readonly baseFee: bigint
}

/** The present price of gas, in wei. */
export interface Fees {
  readonly base: bigint
  /** The tip that the node suggests. */
  readonly tip: bigint
}

export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How often a request is repeated: first pause in milliseconds, factor of each further pause. */
export interface Pace {
  readonly first: number
  readonly factor: number
  readonly longest: number
  /** Total time in milliseconds. */
  readonly patience: number
}

/** Repeats a request until it has an answer; undefined when there is none in time. */
export async function poll<T>(
  { now, sleep }: Clock,
  { first, factor, longest, patience }: Pace,
  ask: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = now() + patience
  for (let pause = first; now() < end; pause = Math.min(pause * factor, longest)) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(pause)
  }
  return undefined
}

/** The sender and limits with which a call is simulated. */
export interface Sender {
  readonly from: Address
  readonly gas?: bigint
  /** Wei for each unit of gas; the sender needs the balance for it, as for a transaction. */
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
}

/** The requests to an EVM chain that payments need: each method is one call to the node. */
export class Chain {
  readonly #rpc: Rpc

  constructor(url: string, transport: RpcTransport) {
    this.#rpc = createRpc(url, transport)
  }

  /** Runs code that may be a payer’s own, and slow: in a request of its own. `timeout`: milliseconds. */
  call(
    to: Address,
    data: `0x${string}`,
    sender?: Sender,
    timeout?: number,
  ): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.askAlone('eth_call', [callOf(to, data, sender), 'latest'], asHex, timeout)
  }

  /** As `call`, in one request with what else is asked at the same time. */
  callTogether(
    to: Address,
    data: `0x${string}`,
    sender: Sender,
    timeout: number,
  ): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [callOf(to, data, sender), 'latest'], asHex, timeout)
  }

  /**
   * What a view function of a contract returns, in the state after a block: a node that has not got there yet cannot
   * answer for it.
   */
  read(
    to: Address,
    data: `0x${string}`,
    block: bigint | 'latest' = 'latest',
  ): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [{ to, data }, asName(block)], asHex)
  }

  /** The result of init code, without deploying it. */
  run(code: `0x${string}`, timeout?: number): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [{ data: code }, 'latest'], asHex, timeout)
  }

  estimateGas(from: Address, to: Address, data: `0x${string}`): Promise<RpcAnswer<bigint>> {
    return this.#rpc.askAlone('eth_estimateGas', [{ from, to, data }], asQuantity)
  }

  /** The account’s next nonce, including transactions in the pool. */
  nextNonce(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('eth_getTransactionCount', [account, 'pending'], asQuantity)
  }

  /** Number of the account's transactions in blocks up to this one: every lower nonce is spent. */
  minedNonce(account: Address, block: bigint): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('eth_getTransactionCount', [account, asNumber(block)], asQuantity)
  }

  /** The account’s native coin in wei. */
  balance(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('eth_getBalance', [account, 'latest'], asQuantity)
  }

  chainId(): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('eth_chainId', [], asQuantity)
  }

  async fees(): Promise<RpcAnswer<Fees>> {
    const [block, tip] = await Promise.all([
      this.block('latest'),
      this.#rpc.ask('eth_maxPriorityFeePerGas', [], asQuantity),
    ])
    if (block.kind !== 'result') return block
    if (tip.kind !== 'result') return tip
    return { kind: 'result', result: { base: block.result.baseFee, tip: tip.result } }
  }

  block(which: bigint | 'latest'): Promise<RpcAnswer<Block>> {
    return this.#rpc.ask('eth_getBlockByNumber', [asName(which), false], asBlock)
  }

  broadcast(raw: `0x${string}`): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.askAlone('eth_sendRawTransaction', [raw], asHex)
  }

  /** Whether the node has the transaction, in its pool or in a block. */
  knows(hash: string): Promise<RpcAnswer<boolean>> {
    return this.#rpc.ask('eth_getTransactionByHash', [hash], (result) => result !== null)
  }

  /** Null while the transaction is not in a block. */
  receipt(hash: string): Promise<RpcAnswer<TransactionReceipt | null>> {
    return this.#rpc.ask('eth_getTransactionReceipt', [hash], (result) =>
      result === null ? null : asReceipt(result),
    )
  }

  /** Nodes refuse spans with too many blocks or logs, each in its own words. */
  logs({ address, topics }: LogFilter, { from, to }: Span): Promise<RpcAnswer<readonly Log[]>> {
    const filter = { address, topics, fromBlock: asNumber(from), toBlock: asNumber(to) }
    return this.#rpc.askAlone('eth_getLogs', [filter], asLogs)
  }

  blockNumber(): Promise<RpcAnswer<bigint>> {
    return this.#rpc.ask('eth_blockNumber', [], asQuantity)
  }
}

function callOf(to: Address, data: `0x${string}`, { from, ...limits }: Partial<Sender> = {}): object {
  const hex = Object.entries(limits).map(([name, value]) => [name, asNumber(value)])
  return { to, data, ...(from === undefined ? {} : { from }), ...Object.fromEntries(hex) }
}

function asNumber(block: bigint): `0x${string}` {
  return `0x${block.toString(16)}`
}

function asName(block: bigint | 'latest'): string {
  return block === 'latest' ? block : asNumber(block)
}

function asBlock(result: unknown): Block | undefined {
  if (!isJsonObject(result)) return undefined
  const [number, timestamp] = [asQuantity(result['number']), asQuantity(result['timestamp'])]
  const baseFee = asQuantity(result['baseFeePerGas']) ?? 0n
  const hash = asHex(result['hash']) ?? ''
  return number === undefined || timestamp === undefined ? undefined : { number, hash, timestamp, baseFee }
}

function asReceipt(result: unknown): TransactionReceipt | undefined {
  if (!isJsonObject(result)) return undefined
  const hash = asHex(result['transactionHash'])
  const block = asQuantity(result['blockNumber'])
  const logs = asLogs(result['logs'])
  if (hash === undefined || block === undefined || logs === undefined || !('status' in result))
    return undefined
  const blockHash = asHex(result['blockHash']) ?? ''
  const [used, price] = [asQuantity(result['gasUsed']), asQuantity(result['effectiveGasPrice'])]
  const gasCost = (used ?? 0n) * (price ?? 0n) + (asQuantity(result['l1Fee']) ?? 0n)
  return { hash, succeeded: result['status'] === '0x1', block, blockHash, gasCost, logs }
}

function asLogs(result: unknown): readonly Log[] | undefined {
  if (!Array.isArray(result)) return undefined
  const logs = result.map(asLog)
  return logs.every((log) => log !== undefined) ? logs : undefined
}

function asLog(result: unknown): Log | undefined {
  if (!isJsonObject(result) || !Array.isArray(result['topics'])) return undefined
  const [address, data] = [asHex(result['address']), asHex(result['data'])]
  const transactionHash = asHex(result['transactionHash'])
  const [block, index] = [asQuantity(result['blockNumber']), asQuantity(result['logIndex'])]
  const topics = result['topics'].map(asHex)
  if (address === undefined || data === undefined || transactionHash === undefined) return undefined
  if (block === undefined || index === undefined) return undefined
  return topics.every((each) => each !== undefined)
    ? { address, data, transactionHash, block, index, topics }
    : undefined
}

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
}

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
 * JSON-RPC over HTTP (https://www.jsonrpc.org/specification), one attempt a call: what may be repeated is decided by who
 * calls. A node that refuses a batch (section 6) is asked each call by itself, from then on always. The endpoint’s URL,
 * which may hold a key, appears in no result.
 */
export function createRpc(url: string, call: RpcTransport): Rpc {
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
    Promise.all(batch.map(({ request }) => post(url, call, request, timeout).then(bodyOf)))

  const askTogether = async (batch: readonly Waiting[], timeout: number): Promise<readonly unknown[]> => {
    const requests = batch.map(({ request }) => request)
    const answer = await post(url, call, requests, timeout)
    if (answer.kind === 'none') return []
    const responses = inOrder(answer.body, requests)
    if (responses !== undefined) return responses
    const single = await askEach(batch, timeout)
    // Else the node is out of order, and may take batches when it is back.
    if (single.some((body) => isJsonObject(body) && 'result' in body)) takesBatches = false
    return single
  }

  return {
    ask: async (method, params, read, timeout = TIMEOUT_MS) =>
      answerOf(await enqueue(requestOf(method, params), timeout), read),
    askAlone: async (method, params, read, timeout = TIMEOUT_MS) =>
      answerOf(bodyOf(await post(url, call, requestOf(method, params), timeout)), read),
  }
}

type Posted = { readonly kind: 'response'; readonly body: unknown } | { readonly kind: 'none' }

/** The body is undefined when it is no JSON. */
async function post(
  url: string,
  call: RpcTransport,
  body: Request | readonly Request[],
  timeout: number,
): Promise<Posted> {
  const signal = AbortSignal.timeout(timeout)
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

function answerOf<T>(body: unknown, read: (result: unknown) => T | undefined): RpcAnswer<T> {
  if (!isJsonObject(body)) return { kind: 'unreachable' }
  if (isJsonObject(body['error'])) return refused(body['error'])
  if (!('result' in body)) return { kind: 'unreachable' }
  const result = read(body['result'])
  return result === undefined ? { kind: 'unreachable' } : { kind: 'result', result }
}

/** Error codes of temporary refusals: rate limits and overload. */
const PASSING: ReadonlySet<number> = new Set([-32005, -32016, -32603, 429])
/** Permanent errors with the same codes, such as "block range too large" and "execution reverted". */
const LASTING = /revert|range/i

function refused({ code: number, message: text, data: bytes }: JsonObject): RpcAnswer<never> {
  const code = typeof number === 'number' ? number : 0
  const message = typeof text === 'string' ? text : ''
  const data = typeof bytes === 'string' ? bytes : undefined
  if (PASSING.has(code) && data === undefined && !LASTING.test(message)) return { kind: 'unreachable' }
  return { kind: 'refused', code, message, data }
}

/** Nodes report "execution reverted" with code 3 or with data; every other error is the node's, not the payment's. */
export function isRevert(answer: RpcAnswer<unknown>): answer is Refused {
  if (answer.kind !== 'refused') return false
  return answer.code === 3 || answer.data !== undefined || /revert/i.test(answer.message)
}

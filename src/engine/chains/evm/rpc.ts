import type { Address } from '../../address.ts'
import { isJsonObject, type JsonObject } from '../../json.ts'
import type { Caller } from '../../runtime.ts'

export type { Caller }

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

type Rpc = <T>(
  method: string,
  params: readonly unknown[],
  read: (result: unknown) => T | undefined,
  /** Milliseconds, when it is less than what every request may take. */
  timeout?: number,
) => Promise<RpcAnswer<T>>

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
    if (!isJsonObject(body)) return { kind: 'unreachable' }
    if (isJsonObject(body['error'])) return refused(body['error'])
    if (!('result' in body)) return { kind: 'unreachable' }
    const result = read(body['result'])
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

function refused({ code: number, message: text, data: bytes }: JsonObject): RpcAnswer<never> {
  const code = typeof number === 'number' ? number : 0
  const message = typeof text === 'string' ? text : ''
  const data = typeof bytes === 'string' ? bytes : undefined
  if (PASSING.has(code) && data === undefined && !LASTING.test(message)) return { kind: 'unreachable' }
  return { kind: 'refused', code, message, data }
}

export type Refused = Extract<RpcAnswer<never>, { readonly kind: 'refused' }>

/** A node says "execution reverted" under code 3 or with data; everything else is the node's trouble, not the payment's. */
export function isRevert(answer: RpcAnswer<unknown>): answer is Refused {
  if (answer.kind !== 'refused') return false
  return answer.code === 3 || answer.data !== undefined || /revert/i.test(answer.message)
}

const asHex = (result: unknown): `0x${string}` | undefined =>
  isHex(result) ? `0x${result.slice(2)}` : undefined

const asQuantity = (result: unknown): bigint | undefined =>
  isHex(result) && result.length > 2 ? BigInt(result) : undefined

export function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value)
}

/** A number or an address as a word of the ABI and of event topics: 64 hexadecimal digits. */
export function word(value: bigint | Address): string {
  return (typeof value === 'bigint' ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, '0')
}

/** An event of a contract that stands in a block. */
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
  /** Wei that its sender paid for gas, a rollup’s fee for its parent chain included where the node reports it. */
  readonly gasCost: bigint
  readonly logs: readonly Log[]
}

/** Logs of one contract: per topic one value, several of which any will do, or null for all. */
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

/** What a unit of gas costs now, in wei. */
export interface Fees {
  readonly base: bigint
  /** What the node thinks has to be added. */
  readonly tip: bigint
}

export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How often something is asked again: milliseconds, and by what factor a pause is longer than the one before. */
export interface Pace {
  readonly first: number
  readonly factor: number
  readonly longest: number
  /** Then nobody asks any more. */
  readonly patience: number
}

/** Asks until there is an answer; undefined when there is none in time. */
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

/** Who would send a call as a transaction, and with what limits. */
export interface Sender {
  readonly from: Address
  readonly gas?: bigint
  /** Wei for each unit of gas; the sender needs the money for it, as for a transaction. */
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
}

/** An EVM chain as far as payments need it: every method is one call to the node. */
export class Chain {
  readonly #rpc: Rpc

  constructor(rpc: Rpc) {
    this.#rpc = rpc
  }

  /** `timeout`: milliseconds. */
  call(
    to: Address,
    data: `0x${string}`,
    sender?: Sender,
    timeout?: number,
  ): Promise<RpcAnswer<`0x${string}`>> {
    const { from, ...limits } = sender ?? {}
    const hex = Object.entries(limits).map(([name, value]) => [name, asNumber(value)])
    const call = { to, data, ...(from === undefined ? {} : { from }), ...Object.fromEntries(hex) }
    return this.#rpc('eth_call', [call, 'latest'], asHex, timeout)
  }

  estimateGas(from: Address, to: Address, data: `0x${string}`): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_estimateGas', [{ from, to, data }], asQuantity)
  }

  /** As `call`, in the state after one block: a node that has not got there yet cannot answer for it. */
  callAt(block: bigint, to: Address, data: `0x${string}`): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc('eth_call', [{ to, data }, asNumber(block)], asHex)
  }

  /** The account’s next nonce, transactions in the pool included. */
  nextNonce(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_getTransactionCount', [account, 'pending'], asQuantity)
  }

  /** How many transactions of the account are in blocks up to this one: every nonce below is spent for good. */
  minedNonce(account: Address, block: bigint): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_getTransactionCount', [account, asNumber(block)], asQuantity)
  }

  /** The account’s native coin in wei. */
  balance(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_getBalance', [account, 'latest'], asQuantity)
  }

  chainId(): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_chainId', [], asQuantity)
  }

  async fees(): Promise<RpcAnswer<Fees>> {
    const [block, tip] = await Promise.all([
      this.block('latest'),
      this.#rpc('eth_maxPriorityFeePerGas', [], asQuantity),
    ])
    if (block.kind !== 'result') return block
    if (tip.kind !== 'result') return tip
    return { kind: 'result', result: { base: block.result.baseFee, tip: tip.result } }
  }

  block(which: bigint | 'latest'): Promise<RpcAnswer<Block>> {
    const name = which === 'latest' ? which : asNumber(which)
    return this.#rpc('eth_getBlockByNumber', [name, false], asBlock)
  }

  broadcast(raw: `0x${string}`): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc('eth_sendRawTransaction', [raw], asHex)
  }

  /** Whether the node has the transaction, in its pool or in a block. */
  knows(hash: string): Promise<RpcAnswer<boolean>> {
    return this.#rpc('eth_getTransactionByHash', [hash], (result) => result !== null)
  }

  /** Null while the transaction is not in a block. */
  receipt(hash: string): Promise<RpcAnswer<TransactionReceipt | null>> {
    return this.#rpc('eth_getTransactionReceipt', [hash], (result) =>
      result === null ? null : asReceipt(result),
    )
  }

  /** Nodes refuse spans that are too wide, or hold too many logs, each in its own words. */
  logs({ address, topics }: LogFilter, { from, to }: Span): Promise<RpcAnswer<readonly Log[]>> {
    const filter = { address, topics, fromBlock: asNumber(from), toBlock: asNumber(to) }
    return this.#rpc('eth_getLogs', [filter], asLogs)
  }

  blockNumber(): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_blockNumber', [], asQuantity)
  }
}

function asNumber(block: bigint): `0x${string}` {
  return `0x${block.toString(16)}`
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

export type Broadcast =
  /** In the pool of the node. */
  | 'taken'
  /** The node says that no pool can hold it, and does not have it. */
  | 'refused'
  /** As refused: the account has too little for it. */
  | 'unfunded'
  /** The pool holds another transaction with its nonce. */
  | 'occupied'
  /** The node has given no answer, or one that proves nothing. */
  | 'unknown'

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
}

/** Milliseconds before each further attempt. */
const PAUSES_MS = [50, 200, 800] as const
/** What has taken longer was no connection cut short: the node hangs. */
const INSISTENCE_MS = 2_000
/** A broadcast ends within this time: its further attempts, and the last one’s own timeout. */
export const BROADCAST_MS = INSISTENCE_MS + 11_000

/**
 * Hands a signed transaction to the node, and the same bytes again while a connection breaks without an answer: they are
 * carried out once however often they arrive, and one that never does leaves a gap below all that come after it.
 */
export async function broadcast(
  chain: Chain,
  transaction: SignedTransaction,
  { now, sleep }: Clock,
): Promise<Broadcast> {
  const begun = now()
  const outcome = await submit(chain, transaction)
  if (outcome !== 'unknown') return outcome
  for (const pause of PAUSES_MS) {
    if (now() - begun + pause > INSISTENCE_MS) break
    await sleep(pause)
    // Any other answer is that of a node which may not be the one that was asked first.
    if ((await submit(chain, transaction)) === 'taken') return 'taken'
  }
  return 'unknown'
}

/** A refusal is no proof: a node may give one after it has taken the same bytes. It is asked for the transaction. */
async function submit(chain: Chain, { raw, hash }: SignedTransaction): Promise<Broadcast> {
  const answer = await chain.broadcast(raw)
  if (answer.kind === 'result') return 'taken'
  if (answer.kind === 'unreachable') return 'unknown'
  const { message } = answer
  if (isKnown(message)) return 'taken'
  const refusal = refusalOf(message)
  if (refusal === 'unknown') return 'unknown'
  const known = await chain.knows(hash)
  if (known.kind !== 'result') return 'unknown'
  return known.result ? 'taken' : refusal
}

/** Any other refusal may be the second answer to bytes that a proxy has sent twice ("nonce too low": the first were mined). */
function refusalOf(message: string): Broadcast {
  if (/replacement|could not replace/i.test(message)) return 'occupied'
  if (/insufficient funds/i.test(message)) return 'unfunded'
  const out = /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i
  return out.test(message) ? 'refused' : 'unknown'
}

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}

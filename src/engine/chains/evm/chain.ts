import type { Address } from '../../address.ts'
import { isJsonObject } from '../../json.ts'
import type { Rpc, RpcAnswer } from './json-rpc.ts'

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

  constructor(rpc: Rpc) {
    this.#rpc = rpc
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

export type Broadcast =
  /** In the pool of the node. */
  | 'taken'
  /** The node refuses the transaction and does not have it. */
  | 'refused'
  /** Refused because the account's balance is too low. */
  | 'unfunded'
  /** The pool holds another transaction with its nonce. */
  | 'occupied'
  /** No answer, or one that proves nothing. */
  | 'unknown'

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
}

/** Milliseconds before each further attempt. */
const PAUSES_MS = [50, 200, 800] as const
/** A longer failed attempt was not a connection cut short: the node hangs. */
const INSISTENCE_MS = 2_000
/** Upper bound of the time of a broadcast: its repeated attempts and the timeout of the last one. */
export const BROADCAST_MS = INSISTENCE_MS + 11_000

/**
 * Sends a signed transaction to the node, and the same bytes again when a connection breaks without an answer.
 * Repeated bytes are executed once, and a lost transaction would leave a gap below all later ones.
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
    // Any other answer may come from another node behind the same address.
    if ((await submit(chain, transaction)) === 'taken') return 'taken'
  }
  return 'unknown'
}

/** A refusal proves nothing: a node may give one after accepting the same bytes. Asks it for the transaction. */
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

/** Any other refusal may answer bytes that a proxy has sent twice ("nonce too low": the first were mined). */
function refusalOf(message: string): Broadcast {
  if (/replacement|could not replace/i.test(message)) return 'occupied'
  if (/insufficient funds/i.test(message)) return 'unfunded'
  const out = /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i
  return out.test(message) ? 'refused' : 'unknown'
}

/** The node already has this transaction, so it counts as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}

import type { Address } from '../../address.ts'
import { asHex, asQuantity, type Rpc, type RpcAnswer } from './rpc.ts'

export interface Log {
  readonly address: Address
  readonly topics: readonly `0x${string}`[]
  readonly data: `0x${string}`
  readonly transactionHash: `0x${string}`
}

/** A log with its place in the chain. */
export interface PlacedLog extends Log {
  readonly block: bigint
  /** Place in its block. */
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

  /** `topics`: what must stand in each place, or any one of several. Both blocks are included. */
  logs(
    address: Address,
    topics: readonly (`0x${string}` | readonly `0x${string}`[])[],
    fromBlock: bigint,
    toBlock: bigint,
  ): Promise<RpcAnswer<readonly Log[]>> {
    const filter = { address, topics, fromBlock: asNumber(fromBlock), toBlock: asNumber(toBlock) }
    return this.#rpc('eth_getLogs', [filter], asLogs)
  }

  /** Nodes refuse spans that are too wide, or hold too much, each in words of its own. */
  logsWithin({ address, topics }: LogFilter, { from, to }: Span): Promise<RpcAnswer<readonly PlacedLog[]>> {
    const filter = { address, topics, fromBlock: asNumber(from), toBlock: asNumber(to) }
    return this.#rpc('eth_getLogs', [filter], asPlacedLogs)
  }

  blockNumber(): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_blockNumber', [], asQuantity)
  }
}

function asNumber(block: bigint): `0x${string}` {
  return `0x${block.toString(16)}`
}

function asBlock(result: unknown): Block | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  if (!('number' in result && 'timestamp' in result)) return undefined
  const [number, timestamp] = [asQuantity(result.number), asQuantity(result.timestamp)]
  const baseFee = 'baseFeePerGas' in result ? asQuantity(result.baseFeePerGas) : 0n
  const hash = ('hash' in result ? asHex(result.hash) : undefined) ?? ''
  return number === undefined || timestamp === undefined
    ? undefined
    : { number, hash, timestamp, baseFee: baseFee ?? 0n }
}

function asReceipt(result: unknown): TransactionReceipt | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  if (!('status' in result && 'transactionHash' in result && 'blockNumber' in result && 'logs' in result))
    return undefined
  const hash = asHex(result.transactionHash)
  const block = asQuantity(result.blockNumber)
  const logs = asLogs(result.logs)
  if (hash === undefined || block === undefined || logs === undefined) return undefined
  const blockHash = ('blockHash' in result ? asHex(result.blockHash) : undefined) ?? ''
  return { hash, succeeded: result.status === '0x1', block, blockHash, gasCost: gasCostOf(result), logs }
}

function gasCostOf(receipt: object): bigint {
  const used = 'gasUsed' in receipt ? asQuantity(receipt.gasUsed) : undefined
  const price = 'effectiveGasPrice' in receipt ? asQuantity(receipt.effectiveGasPrice) : undefined
  const parent = 'l1Fee' in receipt ? asQuantity(receipt.l1Fee) : undefined
  return (used ?? 0n) * (price ?? 0n) + (parent ?? 0n)
}

function asLogs(result: unknown): readonly Log[] | undefined {
  if (!Array.isArray(result)) return undefined
  const logs = result.map(asLog)
  return logs.every((log) => log !== undefined) ? logs : undefined
}

function asPlacedLogs(result: unknown): readonly PlacedLog[] | undefined {
  if (!Array.isArray(result)) return undefined
  const logs = result.map(asPlacedLog)
  return logs.every((log) => log !== undefined) ? logs : undefined
}

function asPlacedLog(result: unknown): PlacedLog | undefined {
  const log = asLog(result)
  if (log === undefined || typeof result !== 'object' || result === null) return undefined
  if (!('blockNumber' in result && 'logIndex' in result)) return undefined
  const [block, index] = [asQuantity(result.blockNumber), asQuantity(result.logIndex)]
  return block === undefined || index === undefined ? undefined : { ...log, block, index }
}

function asLog(result: unknown): Log | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  if (!('address' in result && 'topics' in result && 'data' in result && 'transactionHash' in result))
    return undefined
  const [address, data, transactionHash] = [
    asHex(result.address),
    asHex(result.data),
    asHex(result.transactionHash),
  ]
  if (address === undefined || data === undefined || transactionHash === undefined) return undefined
  if (!Array.isArray(result.topics)) return undefined
  const topics = result.topics.map(asHex)
  return topics.every((each) => each !== undefined) ? { address, data, transactionHash, topics } : undefined
}

import type { Address } from '../../base/address.ts'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { type Deadline, type RpcTransport, systemRuntime } from '../../base/runtime.ts'
import type { Log, LogFilter, BlockRange } from './event-log.ts'
import { type Rpc, createRpc, type RpcAnswer } from './json-rpc.ts'

const asHex = (result: unknown): `0x${string}` | undefined =>
  isHex(result) ? `0x${result.slice(2)}` : undefined

const asQuantity = (result: unknown): bigint | undefined =>
  isHex(result) && result.length > 2 ? BigInt(result) : undefined

export function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value)
}

export interface TransactionReceipt {
  readonly hash: `0x${string}`
  readonly succeeded: boolean
  readonly block: bigint
  readonly blockHash: string
  /** Wei that the sender paid for gas, including a rollup’s fee for its parent chain when the node reports it. */
  readonly gasCost: bigint
  readonly gasUsed: bigint
  readonly logs: readonly Log[]
}

/** The call that a transaction consists of. */
export interface SentCall {
  /** Empty when it creates a contract. */
  readonly to: string
  readonly input: `0x${string}`
}

export interface Block {
  readonly number: bigint
  readonly hash: string
  /** Seconds since the epoch. */
  readonly timestamp: bigint
  /** Wei for each unit of gas. */
  readonly baseFee: bigint
  /** Most gas of its transactions together; undefined when the node does not say. */
  readonly gasLimit?: bigint | undefined
}

/** The present price of gas, in wei. */
export interface Fees {
  readonly base: bigint
  /** The tip that the node suggests. */
  readonly tip: bigint
  /** Most gas of a block; undefined when the node does not say. */
  readonly blockGas?: bigint | undefined
}

/** The sender and limits with which a call is simulated. */
export interface Sender {
  readonly from: Address
  readonly gas?: bigint
  /** Wei for each unit of gas; the sender needs the balance for it, as for a transaction. */
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
}

/**
 * The requests to an EVM chain that payments need: each method is one call to the node. `timeout` is in milliseconds.
 */
export class Chain {
  readonly #rpc: Rpc

  /** `lasting`: messages of refusals that stay, whatever their code. */
  constructor(
    url: string,
    transport: RpcTransport,
    deadline: Deadline = systemRuntime.deadline,
    lasting?: RegExp,
  ) {
    this.#rpc = createRpc(url, transport, deadline, lasting)
  }

  /** Runs code that may be a payer’s own, and slow: in a request of its own. */
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
    timeout?: number,
  ): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [callOf(to, data, sender), 'latest'], asHex, timeout)
  }

  /**
   * What a view function of a contract returns, in the state after a block: a node that does not have the block yet
   * cannot answer for it.
   */
  read(
    to: Address,
    data: `0x${string}`,
    block: bigint | 'latest' = 'latest',
  ): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [{ to, data }, asName(block)], asHex)
  }

  /** Carries a transaction of the chain’s own kind out on trial. */
  trial(transaction: JsonObject): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc.ask('eth_call', [transaction, 'latest'], asHex)
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
    const { baseFee: base, gasLimit: blockGas } = block.result
    return { kind: 'result', result: { base, tip: tip.result, blockGas } }
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

  /** What a transaction calls; null when the node does not have it. */
  transaction(hash: string): Promise<RpcAnswer<SentCall | null>> {
    return this.#rpc.ask('eth_getTransactionByHash', [hash], (result) =>
      result === null ? null : asSentCall(result),
    )
  }

  /** Null while the transaction is not in a block. */
  receipt(hash: string): Promise<RpcAnswer<TransactionReceipt | null>> {
    return this.#rpc.ask('eth_getTransactionReceipt', [hash], (result) =>
      result === null ? null : asReceipt(result),
    )
  }

  /** Nodes refuse spans with too many blocks or logs, each in its own words. */
  logs({ address, topics }: LogFilter, { from, to }: BlockRange): Promise<RpcAnswer<readonly Log[]>> {
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
  const gasLimit = asQuantity(result['gasLimit'])
  return number === undefined || timestamp === undefined
    ? undefined
    : { number, hash, timestamp, baseFee, gasLimit }
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
  const succeeded = result['status'] === '0x1'
  return { hash, succeeded, block, blockHash, gasCost, gasUsed: used ?? 0n, logs }
}

function asSentCall(result: unknown): SentCall | undefined {
  if (!isJsonObject(result)) return undefined
  const input = asHex(result['input'])
  return input === undefined ? undefined : { to: asHex(result['to']) ?? '', input }
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

import type { Address } from '../../address.ts'
import { asHex, asQuantity, type Rpc, type RpcAnswer } from './rpc.ts'

export interface Log {
  readonly address: Address
  readonly topics: readonly `0x${string}`[]
  readonly data: `0x${string}`
  readonly transactionHash: `0x${string}`
}

export interface TransactionReceipt {
  readonly hash: `0x${string}`
  readonly succeeded: boolean
  readonly block: bigint
  readonly logs: readonly Log[]
}

export interface Fees {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/** An EVM chain as far as payments need it: every method is one call to the node. */
export class Chain {
  readonly #rpc: Rpc

  constructor(rpc: Rpc) {
    this.#rpc = rpc
  }

  call(to: Address, data: `0x${string}`, from?: Address): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc('eth_call', [{ to, data, ...(from === undefined ? {} : { from }) }, 'latest'], asHex)
  }

  /** The account’s next nonce, transactions in the pool included. */
  nextNonce(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_getTransactionCount', [account, 'pending'], asQuantity)
  }

  /** How many transactions of the account are in blocks: every nonce below is spent for good. */
  minedNonce(account: Address): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_getTransactionCount', [account, 'latest'], asQuantity)
  }

  /** Twice the base fee, so that the offer outlives several full blocks, and the node’s own idea of a tip. */
  async fees(): Promise<RpcAnswer<Fees>> {
    const [block, tip] = await Promise.all([
      this.#rpc('eth_getBlockByNumber', ['latest', false], asBlock),
      this.#rpc('eth_maxPriorityFeePerGas', [], asQuantity),
    ])
    if (block.kind !== 'result') return block
    const maxPriorityFeePerGas = tip.kind === 'result' ? tip.result : 1_000_000_000n
    const maxFeePerGas = block.result.baseFee * 2n + maxPriorityFeePerGas
    return { kind: 'result', result: { maxFeePerGas, maxPriorityFeePerGas } }
  }

  /** Time of the newest block, in seconds. */
  async time(): Promise<RpcAnswer<bigint>> {
    const block = await this.#rpc('eth_getBlockByNumber', ['latest', false], asBlock)
    return block.kind === 'result' ? { kind: 'result', result: block.result.timestamp } : block
  }

  broadcast(raw: `0x${string}`): Promise<RpcAnswer<`0x${string}`>> {
    return this.#rpc('eth_sendRawTransaction', [raw], asHex)
  }

  /** Null while the transaction is not in a block. */
  receipt(hash: string): Promise<RpcAnswer<TransactionReceipt | null>> {
    return this.#rpc('eth_getTransactionReceipt', [hash], (result) =>
      result === null ? null : asReceipt(result),
    )
  }

  logs(
    address: Address,
    topics: readonly `0x${string}`[],
    fromBlock: bigint,
  ): Promise<RpcAnswer<readonly Log[]>> {
    const filter = { address, topics, fromBlock: `0x${fromBlock.toString(16)}`, toBlock: 'latest' }
    return this.#rpc('eth_getLogs', [filter], asLogs)
  }

  blockNumber(): Promise<RpcAnswer<bigint>> {
    return this.#rpc('eth_blockNumber', [], asQuantity)
  }
}

function asBlock(result: unknown): { baseFee: bigint; timestamp: bigint } | undefined {
  if (typeof result !== 'object' || result === null || !('timestamp' in result)) return undefined
  const timestamp = asQuantity(result.timestamp)
  const baseFee = 'baseFeePerGas' in result ? asQuantity(result.baseFeePerGas) : 0n
  return timestamp === undefined ? undefined : { baseFee: baseFee ?? 0n, timestamp }
}

function asReceipt(result: unknown): TransactionReceipt | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  if (!('status' in result && 'transactionHash' in result && 'blockNumber' in result && 'logs' in result))
    return undefined
  const hash = asHex(result.transactionHash)
  const block = asQuantity(result.blockNumber)
  const logs = asLogs(result.logs)
  if (hash === undefined || block === undefined || logs === undefined) return undefined
  return { hash, succeeded: result.status === '0x1', block, logs }
}

function asLogs(result: unknown): readonly Log[] | undefined {
  if (!Array.isArray(result)) return undefined
  const logs = result.map(asLog)
  return logs.every((log) => log !== undefined) ? logs : undefined
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

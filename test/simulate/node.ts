import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'
import { MULTICALL3 } from '../../src/engine/chains/evm/multicall.ts'
import { PERMIT2, UPTO_PROXY } from '../../src/engine/base/permit2.ts'
import type { Block, SimulatedChain } from './chain.ts'
import type { Log } from './contracts.ts'
import { answerCalls, type Batches, type Reply } from './json-rpc.ts'

/** JSON-RPC over a simulated chain, as a node answers whose newest block is `lag` blocks old. */
export class SimulatedNode {
  readonly #chain: SimulatedChain
  lag = 0
  batches: Batches = 'taken'
  /** Calls for a numbered block are answered from the block before it: not every node keeps each state. */
  mixesBlocks = false

  constructor(chain: SimulatedChain) {
    this.#chain = chain
  }

  /** Answers a body as text. */
  answer(body: string): unknown {
    return answerCalls(body, this.batches, (method, params) => this.#reply(textOf(method), params))
  }

  get #head(): Block {
    return this.#chain.block(this.#chain.head.number - this.lag) ?? this.#chain.head
  }

  #reply(method: string, params: readonly unknown[]): Reply {
    const chain = this.#chain
    const [first, second] = params
    switch (method) {
      case 'eth_chainId':
        return { result: hex(chain.chainId) }
      case 'eth_blockNumber':
        return { result: hex(this.#head.number) }
      case 'eth_maxPriorityFeePerGas':
        return { result: hex(1_000_000) }
      case 'eth_getBalance':
        return { result: hex(chain.coin(textOf(first))) }
      case 'eth_getBlockByNumber': {
        const block = this.#blockAt(first)
        return { result: block === undefined ? null : blockOf(block) }
      }
      case 'eth_getTransactionCount': {
        if (second === 'pending') {
          const pending = chain.pending(textOf(first))
          return { result: hex(this.lag > 0 ? chain.nonce(textOf(first), this.#head.number) : pending) }
        }
        const block = this.#blockAt(second)
        return block === undefined ? NOT_THERE : { result: hex(chain.nonce(textOf(first), block.number)) }
      }
      case 'eth_sendRawTransaction': {
        const refusal = chain.send(textOf(first))
        return refusal === undefined
          ? { result: `0x${'00'.repeat(32)}` }
          : { error: { code: -32000, message: refusal } }
      }
      case 'eth_getTransactionByHash':
        return { result: this.#transaction(textOf(first)) }
      case 'eth_getTransactionReceipt':
        return { result: this.#receipt(textOf(first)) }
      case 'eth_getLogs':
        return this.#logs(first)
      case 'eth_call':
        return this.#call(first, second)
      case 'eth_estimateGas':
        return this.#call(first, 'latest', 'gas')
      default:
        return { error: { code: -32601, message: `${method} is unknown` } }
    }
  }

  #blockAt(name: unknown): Block | undefined {
    if (name === 'latest') return this.#head
    const number = Number(name)
    return number > this.#head.number ? undefined : this.#chain.block(number)
  }

  #transaction(hash: string): JsonObject | null {
    const found = this.#chain.transaction(hash)
    return found === undefined ? null : { hash, to: found.to, input: `0x${found.data}` }
  }

  #receipt(hash: string): JsonObject | null {
    const found = this.#chain.find(hash)
    if (found === undefined || found.block.number > this.#head.number) return null
    const { block, mined } = found
    return {
      transactionHash: hash,
      blockNumber: hex(block.number),
      blockHash: block.hash,
      status: mined.succeeded ? '0x1' : '0x0',
      gasUsed: hex(mined.gasUsed),
      effectiveGasPrice: hex(mined.price),
      logs: mined.logs.map((log, place) => this.#log(log, place, block, mined.hash)),
    }
  }

  #log({ address, topics, data }: Log, place: number, block: Block, hash: string): JsonObject {
    const [blockNumber, logIndex] = [hex(block.number), hex(place)]
    return { address, topics: [...topics], data, transactionHash: hash, blockNumber, logIndex }
  }

  #logs(filter: unknown): Reply {
    if (!isJsonObject(filter) || !Array.isArray(filter['topics'])) return NOT_THERE
    const topics = filter['topics'].map((each: unknown) =>
      each === null ? null : (Array.isArray(each) ? each : [each]).map((one) => String(one).toLowerCase()),
    )
    const to = Number(filter['toBlock'])
    if (to > this.#head.number) return NOT_THERE
    const found = this.#chain.logs(textOf(filter['address']), topics, Number(filter['fromBlock']), to)
    return { result: found.map(({ log, block, hash }, place) => this.#log(log, place, block, hash)) }
  }

  #call(call: unknown, at: unknown, answer: 'result' | 'gas' = 'result'): Reply {
    if (!isJsonObject(call)) return NOT_THERE
    const data = textOf(call['data'])
    if (call['to'] === undefined) return { result: codeSizes(data) }
    const block = this.#blockAt(at)
    if (block === undefined) return NOT_THERE
    const view = this.mixesBlocks && at !== 'latest' ? block.number - 1 : block.number
    const { called, gas } = this.#chain.call(textOf(call['from']), textOf(call['to']), data, view)
    if (called.kind === 'done') return { result: answer === 'gas' ? hex(gas) : called.result }
    return { error: { code: 3, message: `execution reverted: ${called.reason}`, data: called.data } }
  }
}

const NOT_THERE: Reply = { error: { code: -32000, message: 'header not found' } }

/** A text of a request; empty where there is none. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Bytes of the init code before the addresses. */
const SIZES_BYTES = 31

const WITH_CODE = [MULTICALL3, PERMIT2, UPTO_PROXY].map((address) => address.slice(2).toLowerCase())

/** Contracts have code, payers have none. */
function codeSizes(data: string): string {
  const words = data.slice(2 + 2 * SIZES_BYTES).match(/.{64}/g) ?? []
  const sizes = words.map((each) => (WITH_CODE.some((code) => each.toLowerCase().endsWith(code)) ? '1' : '0'))
  return `0x${sizes.map((each) => each.padStart(64, '0')).join('')}`
}

function hex(value: number | bigint): string {
  return `0x${value.toString(16)}`
}

function blockOf({ number, hash, timestamp, baseFee }: Block): JsonObject {
  return { number: hex(number), hash, timestamp: hex(timestamp), baseFeePerGas: hex(baseFee) }
}

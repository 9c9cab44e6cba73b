import { type Address } from '../../base/address.ts'
import { type Chain, type SentCall, type TransactionReceipt } from './chain.ts'
import type { BlockRange, Log, LogFilter } from './event-log.ts'
import type { RpcAnswer } from './json-rpc.ts'

/** The node did not answer, or not completely. The message is for the operator and contains nothing from the node. */
export class RpcUnavailableError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RpcUnavailableError'
  }
}

/** Most blocks of one request: the limit of most nodes. */
const WIDEST = 5_000n
const TRIES = 3
const PAUSE_MS = 500

interface LogScannerSettings {
  readonly chain: Chain
  readonly sleep: (ms: number) => Promise<void>
}

/** The logs of consecutive blocks. */
interface FoundLogs {
  readonly span: BlockRange
  readonly logs: readonly Log[]
}

/**
 * Reads the history of a chain up to its newest block. Every request is repeatable, so short outages of the node are
 * waited out. Throws `RpcUnavailableError` when it cannot be read.
 */
export class LogScanner {
  readonly head: bigint
  /** Milliseconds since the epoch. */
  readonly headTime: number
  readonly #settings: LogScannerSettings
  readonly #times = new Map<bigint, number>()

  private constructor(settings: LogScannerSettings, head: bigint, headTime: number) {
    this.#settings = settings
    this.head = head
    this.headTime = headTime
  }

  /** Throws `RpcUnavailableError`, also when the node is on another chain. */
  static async open(settings: LogScannerSettings, chainId: number): Promise<LogScanner> {
    const { chain } = settings
    const found = await patiently(settings, () => chain.chainId())
    if (found !== BigInt(chainId)) throw new RpcUnavailableError(`its node is on chain ${found}`)
    const head = await patiently(settings, () => chain.blockNumber())
    const { timestamp } = await patiently(settings, () => chain.block(head))
    return new LogScanner(settings, head, Number(timestamp) * 1000)
  }

  /** Number of the first block that is not older than a time in milliseconds; head + 1 when there is none. */
  async blockAt(time: number): Promise<bigint> {
    let [low, high] = [0n, this.head + 1n]
    while (low < high) {
      const middle = (low + high) / 2n
      if ((await this.#timeOf(middle)) < time) low = middle + 1n
      else high = middle
    }
    return low
  }

  async #timeOf(block: bigint): Promise<number> {
    const known = this.#times.get(block)
    if (known !== undefined) return known
    const { chain } = this.#settings
    const { timestamp } = await patiently(this.#settings, () => chain.block(block))
    const time = Number(timestamp) * 1000
    this.#times.set(block, time)
    return time
  }

  /** Null when no block contains the transaction. */
  receipt(hash: string): Promise<TransactionReceipt | null> {
    return patiently(this.#settings, () => this.#settings.chain.receipt(hash))
  }

  /** Null when the node does not have the transaction. */
  transaction(hash: string): Promise<SentCall | null> {
    return patiently(this.#settings, () => this.#settings.chain.transaction(hash))
  }

  call(to: Address, data: `0x${string}`): Promise<`0x${string}`> {
    return patiently(this.#settings, () => this.#settings.chain.read(to, data))
  }

  /** Logs from the first block to the last, in as many steps as the node requires. */
  async *logs(filter: LogFilter, { from, to }: BlockRange): AsyncGenerator<FoundLogs> {
    const { chain, sleep } = this.#settings
    let width = WIDEST
    for (let first = from; first <= to;) {
      const last = first + width - 1n < to ? first + width - 1n : to
      const span = { from: first, to: last }
      const answer = await chain.logs(filter, span)
      if (answer.kind === 'result') {
        yield { span, logs: answer.result }
        first = last + 1n
        continue
      }
      if (width === 1n)
        throw new RpcUnavailableError('its node does not give out logs, not even of one block')
      // A refusal names the limit in words that differ by node; a missing answer may mean the same, or an outage.
      width = narrower(width, answer.kind === 'refused' ? 2n : 4n)
      if (answer.kind === 'unreachable') await sleep(PAUSE_MS)
    }
  }
}

/** The blocks from the first of these logs to the last. */
export function spanOf(logs: readonly Log[]): BlockRange {
  const blocks = logs.map(({ block }) => block)
  const [first = 0n] = blocks
  return {
    from: blocks.reduce((least, block) => (block < least ? block : least), first),
    to: blocks.reduce((most, block) => (block > most ? block : most), first),
  }
}

function narrower(width: bigint, by: bigint): bigint {
  return width / by > 1n ? width / by : 1n
}

/** Repeats a request that only reads. Throws `RpcUnavailableError` when the node refuses, or does not answer at all. */
export async function patiently<T>(
  { sleep }: Pick<LogScannerSettings, 'sleep'>,
  ask: () => Promise<RpcAnswer<T>>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await ask()
    if (answer.kind === 'result') return answer.result
    if (answer.kind === 'refused') throw new RpcUnavailableError('its node refuses to answer')
    if (attempt === TRIES) throw new RpcUnavailableError('its node does not answer')
    await sleep(PAUSE_MS * attempt)
  }
}

/** Whether a text is a transaction hash: facilitators may return anything. */
export function isTransactionHash(text: string | undefined): text is `0x${string}` {
  return text !== undefined && /^0x[0-9a-fA-F]{64}$/.test(text)
}

export async function isOld(chain: Chain, number: bigint, time: bigint): Promise<boolean | undefined> {
  const block = await chain.block(number)
  return block.kind === 'result' ? block.result.timestamp <= time : undefined
}

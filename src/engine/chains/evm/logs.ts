import { isAddress, sameAddress, toChecksum, type Address } from '../../address.ts'
import { word, type Block, type Chain, type TransactionReceipt } from './chain.ts'
import type { Span, Log, LogFilter } from './event-log.ts'
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
  readonly span: Span
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

  call(to: Address, data: `0x${string}`): Promise<`0x${string}`> {
    return patiently(this.#settings, () => this.#settings.chain.read(to, data))
  }

  /** Logs from the first block to the last, in as many steps as the node requires. */
  async *logs(filter: LogFilter, { from, to }: Span): AsyncGenerator<FoundLogs> {
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
export function spanOf(logs: readonly Log[]): Span {
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

async function patiently<T>({ sleep }: LogScannerSettings, ask: () => Promise<RpcAnswer<T>>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await ask()
    if (answer.kind === 'result') return answer.result
    if (answer.kind === 'refused') throw new RpcUnavailableError('its node refuses to answer')
    if (attempt === TRIES) throw new RpcUnavailableError('its node does not answer')
    await sleep(PAUSE_MS * attempt)
  }
}

/** keccak256 of `Transfer(address,address,uint256)` (ERC-20). */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** A transfer, from the event of a token. */
export interface Transfer {
  readonly from: Address
  readonly to: Address
  /** Atomic units. */
  readonly amount: bigint
}

export function transfersTo(token: Address, payees: readonly Address[]): LogFilter {
  return { address: token, topics: [TRANSFER, null, payees.map(addressTopic)] }
}

export function readTransfer({ topics, data }: Log): Transfer | undefined {
  const [selector, from, to] = topics
  if (selector !== TRANSFER || topics.length !== 3 || !/^0x[0-9a-f]{64}$/i.test(data)) return undefined
  const [payer, payee] = [topicAddress(from), topicAddress(to)]
  return payer === undefined || payee === undefined
    ? undefined
    : { from: payer, to: payee, amount: BigInt(data) }
}

/** Whether a log is this transfer. Compares encoded topics: decoding them would hash every address. */
export function isTransfer(
  { address, topics, data }: Log,
  { token, from, to, amount }: Transfer & { readonly token: Address },
): boolean {
  const expected = [TRANSFER, addressTopic(from), addressTopic(to), `0x${word(amount)}`]
  return sameAddress(address, token) && [...topics, data].join(' ').toLowerCase() === expected.join(' ')
}

export function addressTopic(address: Address): `0x${string}` {
  return `0x${word(address)}`
}

export function topicAddress(topic: string | undefined): Address | undefined {
  const address = `0x${topic?.slice(26) ?? ''}`
  return isAddress(address) ? toChecksum(address) : undefined
}

/** Whether a text is a transaction hash: facilitators may return anything. */
export function isTransactionHash(text: string | undefined): text is `0x${string}` {
  return text !== undefined && /^0x[0-9a-fA-F]{64}$/.test(text)
}

/** How many blocks earlier than the exact one the result may be. */
const CLOSE = 16n
const FIRST_STEP = 5_000n

/**
 * A block at or shortly before a time (seconds since the epoch); undefined when the chain cannot be read. Searches
 * back from the newest block with growing steps, since most searches are for recent times, then bisects.
 */
export async function blockAt(chain: Chain, time: bigint, newest: Block): Promise<bigint | undefined> {
  if (newest.timestamp <= time) return newest.number
  let late = newest.number
  let early = late
  for (let step = FIRST_STEP; early > 0n; step *= 4n) {
    early = newest.number > step ? newest.number - step : 0n
    const old = early === 0n ? true : await isOld(chain, early, time)
    if (old === undefined) return undefined
    if (old) break
    late = early
  }
  while (late - early > CLOSE) {
    const middle = (early + late) / 2n
    const old = await isOld(chain, middle, time)
    if (old === undefined) return undefined
    if (old) early = middle
    else late = middle
  }
  return early
}

async function isOld(chain: Chain, number: bigint, time: bigint): Promise<boolean | undefined> {
  const block = await chain.block(number)
  return block.kind === 'result' ? block.result.timestamp <= time : undefined
}

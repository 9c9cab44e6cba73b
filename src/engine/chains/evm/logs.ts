import { isAddress, sameAddress, toChecksum, type Address } from '../../address.ts'
import {
  word,
  type Block,
  type Chain,
  type Log,
  type LogFilter,
  type RpcAnswer,
  type Span,
  type TransactionReceipt,
} from './rpc.ts'

/** The node has not answered, or not enough: the message is for the operator and holds nothing of the node's own. */
export class RpcUnavailableError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RpcUnavailableError'
  }
}

/** The most blocks a search asks for at once: what most nodes allow. */
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
 * Reads the history of a chain up to its newest block. Everything here may be asked again, so a node's outage is waited
 * out for a moment. What cannot be read throws `RpcUnavailableError`.
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

  /** Number of the first block not older than a time in milliseconds; head + 1 when there is none. */
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

  /** Null when the transaction is in no block. */
  receipt(hash: string): Promise<TransactionReceipt | null> {
    return patiently(this.#settings, () => this.#settings.chain.receipt(hash))
  }

  call(to: Address, data: `0x${string}`): Promise<`0x${string}`> {
    return patiently(this.#settings, () => this.#settings.chain.call(to, data))
  }

  /** Logs from the first block to the last, in as many steps as the node needs. */
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
      // A refusal names the limit, in words nobody can foresee; no answer at all may mean the same, or a bad moment.
      width = narrower(width, answer.kind === 'refused' ? 2n : 4n)
      if (answer.kind === 'unreachable') await sleep(PAUSE_MS)
    }
  }
}

/** From the first of these logs to the last. */
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

/** Money that has moved, by the event of a token. */
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

/** Whether a log is this transfer. Topics are compared as they are: decoding them would hash every address. */
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

/** Whether a text can be a transaction hash: what a facilitator calls one may be anything. */
export function isTransactionHash(text: string | undefined): text is `0x${string}` {
  return text !== undefined && /^0x[0-9a-fA-F]{64}$/.test(text)
}

/** How many blocks earlier than the exact one the answer may be. */
const CLOSE = 16n
const FIRST_STEP = 5_000n

/**
 * A block that is not younger than a time (seconds since the epoch), and hardly older than need be; undefined when the
 * chain cannot be asked. Growing steps back from the newest block, for most of what is looked for is recent; then halves.
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

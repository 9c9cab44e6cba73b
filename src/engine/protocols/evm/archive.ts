import type { Address } from '../../address.ts'
import type { Chain, LogFilter, PlacedLog, Span, TransactionReceipt } from './chain.ts'
import type { RpcAnswer } from './rpc.ts'

/** The node has not answered, or not enough: the message is for the operator and holds nothing of the node's own. */
export class Unanswered extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Unanswered'
  }
}

/** The most blocks a search asks for at once: what most nodes allow. */
const WIDEST = 5_000n
const TRIES = 3
const PAUSE_MS = 500

export interface ArchiveSettings {
  readonly chain: Chain
  readonly sleep: (ms: number) => Promise<void>
}

/** The logs of some blocks that lie behind each other. */
export interface Found {
  readonly span: Span
  readonly logs: readonly PlacedLog[]
}

/**
 * The past of a chain up to one block, its head, read with patience: everything here may be asked again, so a node's bad
 * moment is waited out. What cannot be had throws `Unanswered`.
 */
export class Archive {
  readonly head: bigint
  /** Milliseconds since the epoch. */
  readonly headTime: number
  readonly #settings: ArchiveSettings
  readonly #times = new Map<bigint, number>()

  private constructor(settings: ArchiveSettings, head: bigint, headTime: number) {
    this.#settings = settings
    this.head = head
    this.headTime = headTime
  }

  /** Throws `Unanswered`, also when the node is on another chain. */
  static async open(settings: ArchiveSettings, chainId: number): Promise<Archive> {
    const { chain } = settings
    const found = await patiently(settings, () => chain.chainId())
    if (found !== BigInt(chainId)) throw new Unanswered(`its node is on chain ${found}`)
    const head = await patiently(settings, () => chain.blockNumber())
    const { timestamp } = await patiently(settings, () => chain.block(head))
    return new Archive(settings, head, Number(timestamp) * 1000)
  }

  /** Number of the first block not older than a time, in milliseconds; head + 1 when there is none. */
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
  async *logs(filter: LogFilter, { from, to }: Span): AsyncGenerator<Found> {
    const { chain, sleep } = this.#settings
    let width = WIDEST
    for (let first = from; first <= to;) {
      const last = first + width - 1n < to ? first + width - 1n : to
      const span = { from: first, to: last }
      const answer = await chain.logsWithin(filter, span)
      if (answer.kind === 'result') {
        yield { span, logs: answer.result }
        first = last + 1n
        continue
      }
      if (width === 1n) throw new Unanswered('its node does not give out logs, not even of one block')
      // A refusal names the limit, in words nobody can foresee; no answer at all may mean the same, or a bad moment.
      width = narrower(width, answer.kind === 'refused' ? 2n : 4n)
      if (answer.kind === 'unreachable') await sleep(PAUSE_MS)
    }
  }
}

/** From the first of these logs to the last. */
export function spanOf(logs: readonly PlacedLog[]): Span {
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

async function patiently<T>({ sleep }: ArchiveSettings, ask: () => Promise<RpcAnswer<T>>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await ask()
    if (answer.kind === 'result') return answer.result
    if (answer.kind === 'refused') throw new Unanswered('its node refuses to answer')
    if (attempt === TRIES) throw new Unanswered('its node does not answer')
    await sleep(PAUSE_MS * attempt)
  }
}

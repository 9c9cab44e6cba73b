import { LogScanner, RpcUnavailableError } from '../../chains/evm/log-scanner.ts'
import { listAccounts, PREFIX } from './channel-account.ts'
import { channelOf, SHRINKING } from './channel-events.ts'
import type { ChannelId } from './channel-config.ts'
import { readMirror } from './channel-mirror.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { CHANNELS } from './contracts.ts'
import { refresh } from './mirrored.ts'

/** How far the chain was watched: kept in the ledger, for all processes. */
interface Watched {
  /** Last block whose events were read. */
  readonly block: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Blocks that are read again each time: a node may be behind, and a reorganization may change them. */
const OVERLAP = 10n
/** Where watching begins when nothing was watched before: channels are read from the chain at their first use. */
const FIRST_LOOK = 64n
/** Pause between two looks. */
const EVERY_MS = 10_000

/** Sees withdrawals, refunds and whatever else makes a channel hold less than was known here. */
export class ChannelWatch {
  readonly #on: ChannelNetwork
  /** Events that were acted on, by their place in the chain. */
  readonly #handled = new Set<string>()

  constructor(on: ChannelNetwork) {
    this.#on = on
  }

  /** Looks at the chain, when the last look of any process is long enough ago. Resolves to whether a channel has changed. */
  async look(): Promise<boolean> {
    const { ledger, network, clock } = this.#on
    const state = await ledger.states.get(watchName(network.id))
    const watched = parse(state.text)
    if (clock.now() - (watched?.at ?? 0) < EVERY_MS || !(await this.#hasChannels())) return false
    const { chain } = await this.#on.open()
    const at = clock.now()
    let changed: readonly ChannelId[]
    try {
      const scanner = await LogScanner.open({ chain, sleep: clock.sleep }, network.chainId)
      const begin = watched === undefined ? scanner.head - FIRST_LOOK : BigInt(watched.block) - OVERLAP
      changed = await this.#read(scanner, begin > 0n ? begin : 0n)
      const read = await Promise.all(changed.map((id) => refresh(this.#on, id)))
      if (read.includes(undefined)) return true
      const next: Watched = { block: Number(scanner.head), at }
      await ledger.commit([], [{ previous: state, next: JSON.stringify(next) }])
    } catch (fault) {
      if (!(fault instanceof RpcUnavailableError)) throw fault
      this.#on.report(`withdrawals from channels cannot be watched now: ${fault.message}`)
      return false
    }
    return changed.length > 0
  }

  async #hasChannels(): Promise<boolean> {
    const { done } = await listAccounts(this.#on.ledger, this.#on.network.id).next()
    return done !== true
  }

  async #read(scanner: LogScanner, from: bigint): Promise<readonly ChannelId[]> {
    const { ledger, network } = this.#on
    const changed = new Set<ChannelId>()
    const filter = { address: CHANNELS, topics: [SHRINKING] }
    for await (const { logs } of scanner.logs(filter, { from, to: scanner.head }))
      for (const log of logs) {
        const id = channelOf(log)
        const place = `${log.transactionHash}:${log.block}:${log.index}`
        if (id === undefined || this.#handled.has(place)) continue
        const { mirror } = await readMirror(ledger, network.id, id)
        if (mirror === undefined) continue
        changed.add(id)
        this.#handled.add(place)
      }
    if (this.#handled.size > MOST_HANDLED) this.#handled.clear()
    return [...changed]
  }
}

const MOST_HANDLED = 10_000

function watchName(network: string): string {
  return `${PREFIX}watch:${network}`
}

/** Until when a chain was watched by whichever process: milliseconds since the epoch. */
export async function watchedAt({
  ledger,
  network,
}: Pick<ChannelNetwork, 'ledger' | 'network'>): Promise<number> {
  return parse((await ledger.states.get(watchName(network.id))).text)?.at ?? 0
}

function parse(text: string): Watched | undefined {
  if (text === '') return undefined
  const watched: Watched = JSON.parse(text)
  return watched
}

import { LogScanner, RpcUnavailableError } from '../../chains/evm/log-scanner.ts'
import { COPY_PREFIX, listAccounts } from './channel-account.ts'
import { channelOf, SHRINKING } from './channel-events.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import { readMirror } from './channel-mirror.ts'
import { FRESH_MS, type ChannelNetwork } from './channel-network.ts'
import { CHANNELS } from '../../base/channel-contracts.ts'
import { refresh } from './refresh-mirror.ts'

/** How far the chain was watched: kept in the ledger, for all processes. */
interface Watched {
  /** Last block whose events were read. */
  readonly block: number
  /** From when to when it was watched without a break, in milliseconds since the epoch. */
  readonly since: number
  readonly at: number
}

/**
 * Blocks that are read again each time, and their channels with them: a node may be behind, and a reorganization may
 * change them.
 */
const OVERLAP = 10n
/** Pause between two looks. */
const EVERY_MS = 10_000

/** Sees withdrawals, refunds and whatever else makes a channel hold less than was known here. */
export class ChannelWatch {
  readonly #on: ChannelNetwork

  constructor(on: ChannelNetwork) {
    this.#on = on
  }

  /** Looks at the chain, when the last look of any process is long enough ago. Resolves to whether a channel has changed. */
  async look(): Promise<boolean> {
    const { ledger, network, clock } = this.#on
    const state = await ledger.states.get(watchName(network.id))
    const watched = parse(state.text)
    if (clock.now() - watched.at < EVERY_MS || !(await this.#hasChannels())) return false
    const { chain } = await this.#on.open()
    const at = clock.now()
    let changed: readonly ChannelId[]
    try {
      const scanner = await LogScanner.open({ chain, sleep: clock.sleep }, network.chainId)
      const begin = BigInt(watched.block) - OVERLAP
      // What happened before the first look, nobody has seen.
      changed = watched.at === 0 ? await this.#list() : await this.#read(scanner, begin > 0n ? begin : 0n)
      const read = await Promise.all(changed.map((id) => refresh(this.#on, id)))
      // The same blocks are read again.
      if (read.includes(undefined)) return true
      const since = at - watched.at < FRESH_MS ? watched.since : at
      const next: Watched = { block: Number(scanner.head), since, at }
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

  async #list(): Promise<readonly ChannelId[]> {
    const all: ChannelId[] = []
    for await (const { id } of listAccounts(this.#on.ledger, this.#on.network.id)) all.push(id)
    return all
  }

  async #read(scanner: LogScanner, from: bigint): Promise<readonly ChannelId[]> {
    const { ledger, network } = this.#on
    const changed = new Set<ChannelId>()
    const filter = { address: CHANNELS, topics: [SHRINKING] }
    for await (const { logs } of scanner.logs(filter, { from, to: scanner.head }))
      for (const log of logs) {
        const id = channelOf(log)
        if (id === undefined || changed.has(id)) continue
        const { mirror } = await readMirror(ledger, network.id, id)
        if (mirror !== undefined) changed.add(id)
      }
    return [...changed]
  }
}

function watchName(network: string): string {
  return `${COPY_PREFIX}watch:${network}`
}

/** How far a chain was watched, by whichever process. */
export async function readWatched({
  ledger,
  network,
}: Pick<ChannelNetwork, 'ledger' | 'network'>): Promise<Watched> {
  return parse((await ledger.states.get(watchName(network.id))).text)
}

const NEVER: Watched = { block: 0, since: 0, at: 0 }

function parse(text: string): Watched {
  if (text === '') return NEVER
  const watched: Watched = JSON.parse(text)
  return watched
}

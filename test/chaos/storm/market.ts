import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
import type { Dice } from './dice.ts'
import type { Money } from './money.ts'
import { openOffice, type Office } from './office.ts'
import { openStore, type StoreName } from './store.ts'

const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))

/** Processes of the built server on one store, with an office that no kill reaches. */
export interface Market {
  readonly office: Office
  /** The ledger of the processes, beside them. */
  readonly openLedger: () => Promise<Ledger>
  /** Where the process of this place listens now, or did until it was killed. */
  readonly url: (place: number) => string
  /** SIGKILL, and a new process in its place; resolves when that listens. */
  readonly kill: (place: number) => Promise<void>
  /** The same to the store, where that is a process. */
  readonly killStore: (() => Promise<void>) | undefined
  /** Ends the processes and tells what all of them have written. */
  readonly shut: () => Promise<string>
  readonly close: () => Promise<void>
}

export interface MarketSettings {
  readonly processes: number
  readonly store: StoreName
  readonly money: Money
  readonly dice: Dice
}

export async function openMarket({ processes, store, money, dice }: MarketSettings): Promise<Market> {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-storm-'))
  const catalog = join(dataDir, 'catalog.yaml')
  writeFileSync(catalog, catalogOf(money))
  const [kept, office] = await Promise.all([openStore(store, dataDir), openOffice(dice)])
  const env = {
    ...kept.env,
    ...money.env,
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    CATALOG: catalog,
    OFFICE: office.url,
  }
  const servers: RunningServer[] = []
  const written: string[] = []
  const start = async (place: number): Promise<void> => {
    servers[place] = await startServer({ args: ['--handlers', HANDLERS], dataDir, env })
  }
  const serverAt = (place: number): RunningServer => {
    const server = servers[place]
    if (server === undefined) throw new Error(`no process has place ${place}`)
    return server
  }
  for (let place = 0; place < processes; place += 1) await start(place)
  const shut = async (): Promise<string> => {
    await Promise.all(servers.map((server) => server.stop()))
    return [...written, ...servers.map((server) => server.output())].join('\n')
  }
  return {
    office,
    openLedger: () => kept.open(),
    url: (place) => serverAt(place).url,
    kill: async (place) => {
      const { process, output } = serverAt(place)
      const gone = once(process, 'exit')
      process.kill('SIGKILL')
      await gone
      written.push(output())
      await start(place)
    },
    killStore: kept.kill,
    shut,
    close: async () => {
      await shut()
      await Promise.all([kept.close(), office.close()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** The same work on three conditions: paid for when it is done, before it is begun, and kept once it is paid for. */
function catalogOf({ terms }: Money): string {
  const route = (name: string, more: string): string => `  /paid/${name}:
    price: 0.01
    timeout: 10s
    summary: Work in a storm
    parameters:
      n: { type: integer, required: true, minimum: 1, example: 1 }
    example: { n: 1 }
${more}`
  return `catalog: 1
service: { name: Storm, version: '1.0.0' }
payments:
  currency: USD
  ${terms}
routes:
${route('work', '')}${route('deep', '    handler: work\n    settle: upfront\n')}${route('note', '')}`
}

import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { EvmChain } from '../../../src/sandbox/evm/chain.ts'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb.ts'
import { startBase, witness, type Witness } from '../../support/base-chain.ts'
import { openNodeProxy } from '../../support/node-proxy.ts'
import { addressOf, randomKey } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
import type { Dice } from './dice.ts'
import { openOffice, type Office } from './office.ts'

const CATALOG = fileURLToPath(new URL('catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))
const GAS = 10n ** 20n

/** Processes of the built server on one store and one signer, with a chain and an office that no kill reaches. */
export interface Market {
  readonly chain: EvmChain
  readonly witness: Witness
  readonly office: Office
  /** The ledger of the processes, beside them. */
  readonly openLedger: () => Promise<Ledger>
  /** Where the process of this place listens now, or did until it was killed. */
  readonly url: (place: number) => string
  /** SIGKILL, and a new process in its place; resolves when that listens. */
  readonly kill: (place: number) => Promise<void>
  /** Ends the processes and tells what all of them have written. */
  readonly shut: () => Promise<string>
  readonly close: () => Promise<void>
}

export interface MarketSettings {
  readonly processes: number
  readonly dice: Dice
  readonly secrets: Secrets
}

export async function openMarket({ processes, dice, secrets }: MarketSettings): Promise<Market> {
  const [chain, office] = await Promise.all([startBase(), openOffice(dice)])
  const seen = witness(chain)
  const node = await openNodeProxy(chain.rpcUrl)
  // A node on the network: between a call and its answer there is time for a kill.
  node.onCall(async () => {
    await delay(dice.between(0, 20))
  })
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-storm-'))
  const settlerKey = randomKey()
  await chain.setGas(addressOf(settlerKey), GAS)
  secrets.keep('the signer’s key', settlerKey.slice(2))
  secrets.keep('an RPC endpoint', node.url)
  const env = {
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    CATALOG,
    OFFICE: office.url,
    PAY_TO: addressOf(randomKey()),
    SETTLER_PRIVATE_KEY: settlerKey,
    RPC_URL_8453: node.url,
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
    chain,
    witness: seen,
    office,
    openLedger: () => openLmdbLedger(join(dataDir, 'ledger')),
    url: (place) => serverAt(place).url,
    kill: async (place) => {
      const { process, output } = serverAt(place)
      const gone = once(process, 'exit')
      process.kill('SIGKILL')
      await gone
      written.push(output())
      await start(place)
    },
    shut,
    close: async () => {
      await shut()
      await Promise.all([node.close(), office.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { runProgram, startServer, type RunningServer } from '../../support/server.ts'
import { createOperator, sumOf, type Money, type ShownFigures } from './operator.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { PaymentMethod } from './payment-method.ts'
import { openStore, type StoreName } from './store.ts'
import { openUpstream, type Upstream } from './upstream.ts'

const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))

/** Processes of the built server on one store, with an upstream that is never killed. */
export interface Cluster {
  readonly upstream: Upstream
  /** Opens the ledger that the processes share. */
  readonly openLedger: () => Promise<Ledger>
  /** Base address of a process; until its replacement listens, that of the killed one. */
  readonly url: (index: number) => string
  /** Sends SIGKILL and starts another process; resolves when that one listens. */
  readonly kill: (index: number) => Promise<void>
  /** The same for the store; undefined when the store is not a process. */
  readonly killStore: (() => Promise<void>) | undefined
  /** What the console of the first process shows. */
  readonly shown: () => Promise<ShownFigures>
  /** What `payments list --totals` prints. */
  readonly listed: () => Promise<Money>
  /** Pages that were read in the console while processes were killed. */
  readonly pagesRead: () => number
  /** Ends the processes; resolves to the output of all, including killed ones. */
  readonly stop: () => Promise<string>
  readonly close: () => Promise<void>
}

export interface ClusterSettings {
  readonly processes: number
  readonly store: StoreName
  readonly method: PaymentMethod
  readonly random: SeededRandom
}

export async function openCluster(settings: ClusterSettings): Promise<Cluster> {
  const { processes, method } = settings
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-chaos-'))
  const catalog = join(dataDir, 'catalog.yaml')
  const [store, upstream] = await Promise.all([
    openStore(settings.store, dataDir),
    openUpstream(settings.random),
  ])
  writeFileSync(catalog, catalogOf(method, upstream))
  const env = {
    ...store.env,
    ...method.env,
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    CATALOG: catalog,
    UPSTREAM: upstream.url,
  }
  const operator = createOperator()
  const servers: RunningServer[] = []
  const outputs: string[] = []
  const start = async (index: number): Promise<void> => {
    const args = ['--handlers', HANDLERS, ...(index === 0 ? ['--console'] : [])]
    const server = await startServer({ args, dataDir, env })
    servers[index] = server
    if (index === 0) await operator.open(server)
  }
  const serverAt = (index: number): RunningServer => {
    const server = servers[index]
    if (server === undefined) throw new Error(`there is no process ${index}`)
    return server
  }
  const stop = async (): Promise<string> => {
    await operator.close()
    await Promise.all(servers.map((server) => server.stop()))
    return [...outputs, ...servers.map((server) => server.output())].join('\n')
  }
  const close = async (): Promise<void> => {
    await stop()
    await Promise.all([store.close(), upstream.close()])
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    for (let index = 0; index < processes; index += 1) await start(index)
  } catch (fault) {
    await close()
    throw fault
  }
  return {
    upstream,
    openLedger: () => store.open(),
    url: (index) => serverAt(index).url,
    kill: async (index) => {
      const server = serverAt(index)
      const { process, output } = server
      if (process.exitCode !== null || process.signalCode !== null)
        throw new Error(`a process has ended by itself:\n${output().slice(-2_000)}`)
      await server.kill()
      outputs.push(output())
      await start(index)
    },
    killStore: store.kill,
    shown: () => operator.figures(),
    listed: async () => {
      const args = ['payments', 'list', '--totals', '--json', '--data-dir', dataDir]
      const { stdout, stderr } = await runProgram(args, env)
      if (stdout === '') throw new Error(stderr)
      const { revenue }: Listed = JSON.parse(stdout)
      return {
        ...sumOf(revenue.money.map(({ amount }) => ({ payments: 0, amount }))),
        payments: revenue.payments,
      }
    },
    pagesRead: operator.read,
    stop,
    close,
  }
}

interface Listed {
  readonly revenue: {
    readonly payments: number
    readonly money: readonly { readonly amount: string }[]
  }
}

function catalogOf({ catalogYaml, routes }: PaymentMethod, { url }: Upstream): string {
  return `catalog: 1
service: { name: Chaos, version: '1.0.0' }
payments:
  currency: USD
  ${catalogYaml}
routes:
${routes.map(({ yaml }) => yaml(url)).join('')}`
}

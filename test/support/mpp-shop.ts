import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openNodeProxy, type NodeProxy } from './node-proxy.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'
import { startServer, type RunningServer } from './server.ts'
import { startTempo, TEMPO_CHAIN, type TempoChain } from './tempo.ts'
import { openWorkplace, type Workplace } from './workplace.ts'

const CATALOG = fileURLToPath(new URL('../fixtures/payments/mpp.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../fixtures/payments/handlers', import.meta.url))

/** A service as an operator runs it, on a local Tempo chain with worthless money. */
export interface MppShop {
  readonly url: string
  readonly server: RunningServer
  readonly chain: TempoChain
  readonly node: NodeProxy
  readonly workplace: Workplace
  readonly recipient: Hex
  readonly secret: string
  /** Kills the server as a power cut would and starts it again on what it has left. */
  restart(): Promise<void>
  readonly close: () => Promise<void>
}

export async function openMppShop(more: Readonly<Record<string, string>> = {}): Promise<MppShop> {
  const [chain, workplace] = await Promise.all([startTempo(), openWorkplace()])
  const node = await openNodeProxy(chain.rpcUrl)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const recipient = addressOf(randomKey())
  const secret = randomKey()
  const start = (): Promise<RunningServer> =>
    startServer({
      args: ['--catalog', CATALOG, '--handlers', HANDLERS],
      dataDir,
      env: {
        HOST: '127.0.0.1',
        PAY_TO: addressOf(randomKey()),
        SETTLER_PRIVATE_KEY: randomKey(),
        RPC_URL_8453: 'http://127.0.0.1:1',
        [`RPC_URL_${TEMPO_CHAIN}`]: node.url,
        MPP_RECIPIENT: recipient,
        MPP_SECRET_KEY: secret,
        WORKPLACE: workplace.url,
        ...more,
      },
    })
  let server = await start()
  return {
    get url() {
      return server.url
    },
    get server() {
      return server
    },
    chain,
    node,
    workplace,
    recipient,
    secret,
    restart: async () => {
      const gone = new Promise((resolve) => server.process.once('exit', resolve))
      server.process.kill('SIGKILL')
      await gone
      server = await start()
    },
    close: async () => {
      await server.stop()
      await Promise.all([node.close(), workplace.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

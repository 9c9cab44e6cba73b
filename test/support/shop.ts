import { fileURLToPath } from 'node:url'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EvmChain } from '../../src/sandbox/evm/chain.ts'
import { startBase, onchainClient, type OnchainClient } from './base-chain.ts'
import { openRpcProxy, type RpcProxy } from './rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'
import { startServer, type RunningServer } from './server.ts'
import { openCountingUpstream, type CountingUpstream } from './upstream.ts'

const CATALOG = fileURLToPath(new URL('../fixtures/payments/catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../fixtures/payments/handlers', import.meta.url))
const GAS = 10n ** 18n
const WALLET_BALANCE = 100_000_000n

/** A service as an operator runs it, on a local chain that equals Base but for its money. */
export interface Shop {
  readonly url: string
  /** What the buyer sees in challenges. */
  readonly baseUrl: string
  readonly server: RunningServer
  readonly chain: EvmChain
  readonly onchain: OnchainClient
  readonly node: RpcProxy
  readonly upstream: CountingUpstream
  readonly payTo: Hex
  readonly signer: Hex
  readonly signerKey: Hex
  /** A new wallet with tokens. */
  wallet(atomic?: bigint): Promise<Hex>
  /** Kills the server and starts it again on its data, after what happens `meanwhile`. */
  restart(meanwhile?: () => Promise<void>): Promise<void>
  /** Another process on the same store and with the same signer, on a port of its own. */
  branch(more?: Readonly<Record<string, string>>): Promise<RunningServer>
  /** What every process has written, the killed ones too. */
  readonly output: () => string
  readonly close: () => Promise<void>
}

/** Environment variables that differ from an operator with a signer; an empty one is removed. */
type EnvOverrides = (chain: EvmChain, node: RpcProxy) => Promise<Readonly<Record<string, string>>>

/** Production configuration: no --sandbox, fresh random keys, four networks in the catalog, an endpoint for Base only. */
export async function openShop(
  overridesFor: EnvOverrides = async () => ({}),
  args: readonly string[] = ['--handlers', HANDLERS],
): Promise<Shop> {
  const [chain, upstream] = await Promise.all([startBase(), openCountingUpstream()])
  const node = await openRpcProxy(chain.rpcUrl)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const signerKey = randomKey()
  const payTo = addressOf(randomKey())
  const signer = addressOf(signerKey)
  await chain.setGas(signer, GAS)
  const baseUrl = 'https://api.example.com'
  const overrides = await overridesFor(chain, node)
  const servers = new Set<RunningServer>()
  const starting = new Set<Promise<unknown>>()
  let isClosed = false
  const start = async (more: Readonly<Record<string, string>> = {}): Promise<RunningServer> => {
    if (isClosed) throw new Error('the shop is closed')
    const launch = startServer({
      args,
      dataDir,
      env: {
        CATALOG,
        HOST: '127.0.0.1',
        BASE_URL: baseUrl,
        PAY_TO: payTo,
        SETTLER_PRIVATE_KEY: signerKey,
        RPC_URL_8453: node.url,
        UPSTREAM_URL: upstream.url,
        ...overrides,
        ...more,
      },
    })
    starting.add(launch)
    const started = await launch
    servers.add(started)
    return started
  }
  let server = await start()
  return {
    get url() {
      return server.url
    },
    get server() {
      return server
    },
    baseUrl,
    chain,
    onchain: onchainClient(chain),
    node,
    upstream,
    payTo,
    signer,
    signerKey,
    wallet: async (atomic = WALLET_BALANCE) => {
      const key = randomKey()
      if (atomic > 0n) await chain.mint(addressOf(key), atomic)
      return key
    },
    restart: async (meanwhile) => {
      await server.kill()
      await meanwhile?.()
      server = await start()
    },
    branch: start,
    output: () => Array.from(servers, (each) => each.output()).join('\n'),
    close: async () => {
      // A test that has failed may be starting one.
      isClosed = true
      await Promise.allSettled(starting)
      await Promise.all(Array.from(servers, (each) => each.stop()))
      await Promise.all([node.close(), upstream.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

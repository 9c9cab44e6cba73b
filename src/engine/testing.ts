import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { x402 } from '../buyer/protocols/x402.ts'
import { USUAL_CHANNELS, type Catalog } from './catalog/catalog.ts'
import { attach, createHttpServer, listen } from './http/server.ts'
import { closeServer } from './http/shutdown.ts'
import { findNetwork } from './base/networks.ts'
import { addressOfKey } from './chains/evm/signature.ts'
import { systemRuntime } from './base/runtime.ts'
import type { Ratecard, RatecardOptions } from './index.ts'
import { openService, type EmbeddedService } from './app/embedded-service.ts'
import { openRatecard } from './app/ratecard.ts'
import { OPTIONS } from './app/option-names.ts'
import { ResourceStack } from './base/resource-stack.ts'
import { startEvmChain } from '../sandbox/evm/chain.ts'

/** What a test server is given: as {@link RatecardOptions}, without what the test server brings itself. */
export type TestServerOptions = Omit<RatecardOptions, 'baseUrl' | 'payments' | 'ledger' | 'cache' | 'dataDir'>

/** A catalog that is served on this machine, and a wallet that pays for it with play money. */
export interface TestServer {
  /** Its address: `http://localhost:` and a free port. */
  readonly url: string
  /**
   * Requests a path and pays when it is asked to, as a buyer does. Resolves to the last response: 200 with the answer, or
   * what refused the payment.
   */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** What the catalog has earned so far, in units of USDC with six decimals: `1_000n` is 0.001 USD. */
  received(): Promise<bigint>
  /** Private key of the wallet, for a client of your own. It holds 1,000 USDC of play money. */
  readonly payerKey: `0x${string}`
  /** JSON-RPC endpoint of the chain, which has the id of Base Sepolia. */
  readonly rpcUrl: string
  /** Stops the server and the chain, and removes their data. */
  close(): Promise<void>
}

const NETWORK = 'base-sepolia'
const FUNDS = 1_000_000_000n
const GAS = 10n ** 18n
/** Time for requests in flight when a test closes its server. */
const DRAIN_MS = 5_000

/**
 * Serves a catalog for a test: a local chain with a token, a server on a free port and a wallet with play money. Payments
 * are signed, verified and settled as in production; the networks that the catalog names are replaced by the local chain.
 * Needs the optional package `@foundry-rs/anvil`.
 *
 * @throws {CatalogError} The catalog cannot be served.
 *
 * @example
 * import assert from 'node:assert/strict'
 * import { startTestServer } from 'ratecard/testing'
 *
 * const hello = async () => ({ source: [], body: { text: 'Hello' } })
 * const server = await startTestServer({ catalog: 'catalog.yaml', handlers: { hello } })
 * const response = await server.fetch('/paid/hello')
 * assert.equal(response.status, 200)
 * assert.equal(await server.received(), 1_000n)
 * await server.close()
 */
export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const opened = new ResourceStack((fault) => console.error(fault))
  const close = (): Promise<void> => opened.close()
  try {
    const [payerKey, signerKey] = [randomKey(), randomKey()]
    const payTo = addressOf(randomKey())
    const network = findNetwork(NETWORK)
    if (network === undefined) throw new Error(`${NETWORK} is not in the table of networks`)
    const { chainId, token } = network
    const chain = await startEvmChain({
      chainId,
      asset: token.address,
      tokenName: token.name,
      tokenVersion: token.version,
    })
    opened.defer(() => chain.stop())
    await chain.setGas(addressOf(signerKey), GAS)
    await chain.mint(addressOf(payerKey), FUNDS)
    const dataDir = await mkdtemp(join(tmpdir(), 'ratecard-test-'))
    opened.defer(() => rm(dataDir, { recursive: true, force: true }))
    let service: EmbeddedService | undefined
    let app: Ratecard | undefined
    opened.defer(async () => service?.close())
    opened.defer(async () => app?.close())
    const server = createHttpServer()
    const url = `http://localhost:${await listen(server, 0, '127.0.0.1')}`
    opened.defer(() => closeServer(server, DRAIN_MS))
    const x402Options = {
      payTo,
      rpcUrls: { [NETWORK]: chain.rpcUrl },
      signerKeys: [signerKey],
      channelKeys: [signerKey],
    }
    const settings = { ...options, baseUrl: url, dataDir, payments: { x402: x402Options } }
    const { options: more, prepare } = (service = await openService(settings, 'sandbox'))
    app = await openRatecard(
      { ...settings, ...more },
      {
        names: OPTIONS,
        prepare: async (catalog) => ({
          ...(await prepare(catalog)),
          adapt: (revised) => onTestChain(revised, network.id),
        }),
      },
    )
    attach(server, app.koa)
    return {
      url,
      payerKey,
      rpcUrl: chain.rpcUrl,
      fetch: (path, init) => pay(new URL(path, url), init, { key: payerKey, rpcUrl: chain.rpcUrl }),
      received: () => chain.balance(payTo),
      close,
    }
  } catch (fault) {
    await close()
    throw fault
  }
}

/** The local chain takes the place of the networks in the catalog. */
function onTestChain(catalog: Catalog, network: string): Catalog {
  const {
    schemes = ['exact'],
    channels = USUAL_CHANNELS,
    timeout = 60_000,
    v1 = true,
  } = catalog.payments.x402 ?? {}
  const x402Terms = { schemes, channels, timeout, v1, networks: [network], limits: {}, testnet: false }
  return { ...catalog, payments: { ...catalog.payments, x402: x402Terms, mpp: undefined } }
}

interface Payer {
  readonly key: `0x${string}`
  readonly rpcUrl: string
}

async function pay(url: URL, init: RequestInit = {}, { key, rpcUrl }: Payer): Promise<Response> {
  const first = await fetch(url, init)
  const offers = first.status === 402 ? x402.readOffers({ kind: 'http', headers: first.headers }) : []
  const offer = offers.find(({ account }) => account === 'evm')
  if (offer?.account !== 'evm') return first
  await first.body?.cancel()
  const { random } = systemRuntime
  const signing = await offer.sign({
    key,
    rpcUrl: () => rpcUrl,
    now: new Date(systemRuntime.now()),
    random,
  })
  if (signing.kind === 'unsigned') throw new Error(signing.reason)
  const headers = new Headers(init.headers)
  for (const [name, value] of Object.entries(signing.headers)) headers.set(name, value)
  return fetch(url, { ...init, headers })
}

function randomKey(): `0x${string}` {
  return `0x${Buffer.from(systemRuntime.random(32)).toString('hex')}`
}

function addressOf(key: `0x${string}`): `0x${string}` {
  const address = addressOfKey(key)
  if (address === undefined) throw new Error('a random number was no private key')
  return address
}

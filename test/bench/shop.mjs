// A seller on its own local chain, which equals Base except for its money. Needs tsx (see `compare.mjs`).
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBase, onchainClient } from '../support/base-chain.ts'
import { openRpcProxy } from '../support/rpc-proxy.ts'
import { addressOf, randomKey } from '../support/payment.ts'
import { openCountingUpstream } from '../support/upstream.ts'

const GAS = 10n ** 18n
const WALLET_BALANCE = 1_000_000_000n

/** The seller is not started yet, so that a fault can be set up first. */
export async function openShop(seller) {
  const [chain, upstream] = await Promise.all([startBase(), openCountingUpstream()])
  const node = await openRpcProxy(chain.rpcUrl)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-bench-'))
  const signerKey = randomKey()
  const payTo = addressOf(randomKey())
  await chain.setGas(addressOf(signerKey), GAS)
  const onchain = onchainClient(chain)
  let server
  let calls = 0
  return {
    seller,
    chain,
    node,
    upstream,
    signerKey,
    mining: onchain,
    get pids() {
      return server.pids ?? [server.pid]
    },
    lag: () => server.lag(),
    get ports() {
      return server.ports ?? [server.port]
    },
    get port() {
      return server.port
    },
    url: (path) => `http://127.0.0.1:${server.port}${path}`,
    /** A path with arguments that no earlier call has used. */
    path: (route) => `${route}?n=${(calls += 1)}`,
    /** `settings` replace the defaults: settlement with a key, through this node. */
    start: async (settings = {}) => {
      const defaults = { rpcUrl: node.url, signerKey, upstream: upstream.url, payTo, dataDir }
      server = await seller.start({ ...defaults, ...settings })
    },
    /** SIGKILL. */
    kill: () => server?.stop(),
    alive: () => server.alive(),
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), WALLET_BALANCE)
      return key
    },
    /** Transfers to the seller on the chain so far. */
    charges: async () => (await onchain.received(payTo)).length,
    /** Charges of one wallet. */
    chargesOf: async (key) => {
      const payer = addressOf(key)
      return (await onchain.uses()).filter((use) => use.payer === payer).length
    },
    close: async () => {
      server?.stop()
      await Promise.all([node.close(), upstream.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** A free port. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

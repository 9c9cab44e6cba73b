// A seller on a chain of its own, which is Base in everything but its money. Needs tsx (see `compare.mjs`).
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBase, witness } from '../support/base-chain.ts'
import { openNodeProxy } from '../support/node-proxy.ts'
import { addressOf, randomKey } from '../support/payment.ts'
import { openWorkplace } from '../support/workplace.ts'

const GAS = 10n ** 18n
const PURSE = 1_000_000_000n

/** The seller is not started yet: what stands around it may be spoiled first. */
export async function openMarket(seller) {
  const [chain, workplace] = await Promise.all([startBase(), openWorkplace()])
  const node = await openNodeProxy(chain.rpcUrl)
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-bench-'))
  const settlerKey = randomKey()
  const payTo = addressOf(randomKey())
  await chain.setGas(addressOf(settlerKey), GAS)
  const look = witness(chain)
  let server
  let asked = 0
  return {
    seller,
    chain,
    node,
    workplace,
    settlerKey,
    mining: look,
    get pid() {
      return server.pid
    },
    get port() {
      return server.port
    },
    url: (path) => `http://127.0.0.1:${server.port}${path}`,
    /** A path with arguments nobody has asked for yet. */
    path: (route) => `${route}?n=${(asked += 1)}`,
    /** `means`: what it settles with, where that is not a key over this node. */
    start: async (means = {}) => {
      const usual = { rpcUrl: node.url, settlerKey, workplace: workplace.url, payTo, dataDir }
      server = await seller.start({ ...usual, ...means })
    },
    /** SIGKILL. */
    kill: () => server?.stop(),
    alive: () => server.alive(),
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), PURSE)
      return key
    },
    /** Transfers to the seller so far: the chain’s word. */
    charges: async () => (await look.received(payTo)).length,
    /** How often one wallet was charged. */
    chargesOf: async (key) => {
      const payer = addressOf(key)
      return (await look.uses()).filter((use) => use.payer === payer).length
    },
    close: async () => {
      server?.stop()
      await Promise.all([node.close(), workplace.close(), chain.stop()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** A port nobody listens at. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

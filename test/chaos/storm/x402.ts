import { setTimeout as delay } from 'node:timers/promises'
import { startBase, witness } from '../../support/base-chain.ts'
import { openNodeProxy } from '../../support/node-proxy.ts'
import {
  addressOf,
  challengeOf,
  nonceOf,
  randomKey,
  readHeader,
  sign,
  stockFetch,
} from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import type { Dice } from './dice.ts'
import type { Money } from './money.ts'

const GAS = 10n ** 20n
const PURSE = 10n ** 12n
/** Between a call to the node and its answer there is time for a kill. */
const CALL_MS = 20
/** Blocks come by chance: payments are caught with their transaction in the pool. */
const BLOCK_MS = 400

export async function openX402(dice: Dice, secrets: Secrets): Promise<Money> {
  const chain = await startBase()
  const seen = witness(chain)
  const node = await openNodeProxy(chain.rpcUrl)
  node.onCall(async () => {
    await delay(dice.between(0, CALL_MS))
  })
  const settlerKey = randomKey()
  await chain.setGas(addressOf(settlerKey), GAS)
  secrets.keep('the signer’s key', settlerKey.slice(2))
  secrets.keep('an RPC endpoint', node.url)
  return {
    terms: 'x402: { networks: [base], timeout: 60s }',
    env: { PAY_TO: addressOf(randomKey()), SETTLER_PRIVATE_KEY: settlerKey, RPC_URL_8453: node.url },
    header: 'payment-signature',
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), PURSE)
      return key
    },
    client: stockFetch,
    sign: async (url, key, transport) => (await sign(await challengeOf(url, transport), key)).header,
    markOf: (header) => nonceOf(header).toLowerCase(),
    markOfKey: (key) => key.slice(key.lastIndexOf(':') + 1),
    charges: async () =>
      (await seen.uses()).map(({ nonce, transaction }) => ({ mark: nonce.toLowerCase(), transaction })),
    receiptOf: (answer) => {
      if (!answer.headers.has('payment-response')) return undefined
      const { transaction } = readHeader(answer, 'payment-response')
      return typeof transaction === 'string' ? transaction : undefined
    },
    tick: async () => {
      await seen.setMining('by hand')
      await delay(dice.between(20, BLOCK_MS))
      await seen.mine()
    },
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

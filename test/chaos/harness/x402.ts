import { setTimeout as delay } from 'node:timers/promises'
import { startBase, onchainClient } from '../../support/base-chain.ts'
import { openRpcProxy } from '../../support/rpc-proxy.ts'
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
import type { SeededRandom } from './seeded-random.ts'
import type { PaymentMethod } from './payment-method.ts'
import { noteTransactions, reorganize } from './reorganization.ts'

const GAS = 10n ** 20n
const WALLET_BALANCE = 10n ** 12n
/** Delay of every call to the node, so that kills meet calls in flight. */
const CALL_MS = 20
/** Blocks are mined at random intervals, so that kills meet transactions in the pool. */
const BLOCK_MS = 400

export async function openX402(random: SeededRandom, secrets: Secrets): Promise<PaymentMethod> {
  const chain = await startBase()
  const onchain = onchainClient(chain)
  const node = await openRpcProxy(chain.rpcUrl)
  const rawOf = noteTransactions(node)
  node.onCall(async () => {
    await delay(random.between(0, CALL_MS))
  })
  const settlerKey = randomKey()
  await chain.setGas(addressOf(settlerKey), GAS)
  secrets.add('the signer’s key', settlerKey.slice(2))
  secrets.add('an RPC endpoint', node.url)
  return {
    catalogYaml: 'x402: { networks: [base], timeout: 60s }',
    env: { PAY_TO: addressOf(randomKey()), SETTLER_PRIVATE_KEY: settlerKey, RPC_URL_8453: node.url },
    header: 'payment-signature',
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), WALLET_BALANCE)
      return key
    },
    client: stockFetch,
    sign: async (url, key, transport) => (await sign(await challengeOf(url, transport), key)).header,
    referenceOf: (header) => nonceOf(header).toLowerCase(),
    referenceOfKey: (key) => key.slice(key.lastIndexOf(':') + 1),
    charges: async () =>
      (await onchain.uses()).map(({ nonce, transaction, amount }) => ({
        reference: nonce.toLowerCase(),
        transaction,
        amount,
      })),
    receiptOf: (answer) => {
      if (!answer.headers.has('payment-response')) return undefined
      const { transaction } = readHeader(answer, 'payment-response')
      return typeof transaction === 'string' ? transaction : undefined
    },
    tick: async () => {
      await onchain.setMining('manual')
      await delay(random.between(20, BLOCK_MS))
      await onchain.mine()
    },
    reorganize: (depth) => reorganize({ rpcUrl: chain.rpcUrl, depth, mining: 'manual', random, rawOf }),
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

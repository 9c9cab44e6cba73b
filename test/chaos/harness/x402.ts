import { setTimeout as delay } from 'node:timers/promises'
import { startBase, onchainClient, type OnchainClient } from '../../support/base-chain.ts'
import { openRpcProxy } from '../../support/rpc-proxy.ts'
import {
  addressOf,
  challengeOf,
  nonceOf,
  randomKey,
  readHeader,
  sign,
  stockFetch,
  type Hex,
} from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Charge, PaymentMethod } from './payment-method.ts'
import { noteTransactions, reorganize } from './reorganization.ts'
import { FIXED_ROUTES } from './routes.ts'

/** What differs between schemes of x402 that are settled on one chain. */
export interface SchemeMethod extends Pick<PaymentMethod, 'routes' | 'client' | 'sign' | 'referenceOf'> {
  readonly name: string
  /** What a new wallet does before its first payment. */
  prepare(onchain: OnchainClient, wallet: Hex): Promise<void>
  charges(onchain: OnchainClient, rpcUrl: string, payTo: Hex): Promise<Charge[]>
}

const EXACT: SchemeMethod = {
  name: 'exact',
  routes: FIXED_ROUTES,
  prepare: async () => undefined,
  client: stockFetch,
  sign: async (url, key, transport) => (await sign(await challengeOf(url, transport), key)).header,
  referenceOf: (header) => nonceOf(header).toLowerCase(),
  charges: async (onchain) =>
    (await onchain.uses()).map(({ nonce, transaction, amount }) => ({
      reference: nonce.toLowerCase(),
      transaction,
      amount,
    })),
}

const GAS = 10n ** 20n
const WALLET_BALANCE = 10n ** 12n
/** Delay of every call to the node, so that kills meet calls in flight. */
const CALL_MS = 20
/** Blocks are mined at random intervals, so that kills meet transactions in the pool. */
const BLOCK_MS = 400

export async function openX402(
  random: SeededRandom,
  secrets: Secrets,
  scheme: SchemeMethod = EXACT,
): Promise<PaymentMethod> {
  const chain = await startBase()
  const onchain = onchainClient(chain)
  const node = await openRpcProxy(chain.rpcUrl)
  const rawOf = noteTransactions(node)
  node.onCall(async () => {
    await delay(random.between(0, CALL_MS))
  })
  const signerKey = randomKey()
  await chain.setGas(addressOf(signerKey), GAS)
  secrets.add('the signer’s key', signerKey.slice(2))
  secrets.add('an RPC endpoint', node.url)
  const payTo = addressOf(randomKey())
  const { routes, client, sign: signFor, referenceOf } = scheme
  return {
    routes,
    client,
    sign: signFor,
    referenceOf,
    catalogYaml: `x402: { networks: [base], schemes: [${scheme.name}], timeout: 60s }`,
    env: { PAY_TO: payTo, SETTLER_PRIVATE_KEY: signerKey, RPC_URL_8453: node.url },
    header: 'payment-signature',
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), WALLET_BALANCE)
      await scheme.prepare(onchain, addressOf(key))
      return key
    },
    referenceOfKey: (key) => key.slice(key.lastIndexOf(':') + 1),
    charges: () => scheme.charges(onchain, chain.rpcUrl, payTo),
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

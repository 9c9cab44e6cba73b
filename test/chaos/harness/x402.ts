import { setTimeout as delay } from 'node:timers/promises'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import { startBase, onchainClient, type OnchainClient } from '../../support/base-chain.ts'
import { at } from '../../support/documents.ts'
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
import { noteTransactions, reorganize, standingOf } from './reorganization.ts'
import { FIXED_ROUTES } from './routes.ts'

/** What differs between schemes of x402 that are settled on one chain. */
export interface SchemeMethod extends Pick<
  PaymentMethod,
  'routes' | 'sign' | 'referenceOf' | 'referenceOfKey' | 'env' | 'transactionOf'
> {
  /** Names the scheme below `x402` in the catalog. */
  readonly terms: string
  /** What a new wallet does before its first payment. */
  prepare(onchain: OnchainClient, wallet: Hex): Promise<void>
  client(key: Hex, transport: typeof fetch, rpcUrl: string): typeof fetch
  charges(paid: Paid): Promise<Charge[]>
  /** Transaction of a PAYMENT-RESPONSE. */
  readonly receiptIn: (response: JsonObject) => string | undefined
}

/** Where the money has moved. */
export interface Paid {
  readonly onchain: OnchainClient
  readonly rpcUrl: string
  readonly payTo: Hex
  /** What the ledger has. */
  readonly records: readonly PaymentRecord[]
}

/** Keys of payments end with their nonce. */
export function nonceInKey(key: string): string {
  return key.slice(key.lastIndexOf(':') + 1)
}

/** The member that names the transaction of a charge. */
export function transactionIn({ transaction }: JsonObject): string | undefined {
  return typeof transaction === 'string' ? transaction : undefined
}

const EXACT: SchemeMethod = {
  terms: 'schemes: [exact]',
  env: {},
  routes: FIXED_ROUTES,
  prepare: async () => undefined,
  client: stockFetch,
  sign: async (url, key, transport) => (await sign(await challengeOf(url, transport), key)).header,
  referenceOf: (header) => nonceOf(header).toLowerCase(),
  referenceOfKey: nonceInKey,
  charges: async ({ onchain }) =>
    (await onchain.uses()).map(({ nonce, transaction, amount }) => ({
      reference: nonce.toLowerCase(),
      transaction,
      amount,
    })),
  receiptIn: transactionIn,
  transactionOf: ({ transaction }) => transaction,
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
  const { rawOf, broadcastsOf } = noteTransactions(node, chain.rpcUrl)
  node.onCall(async () => {
    await delay(random.between(0, CALL_MS))
  })
  const signerKey = randomKey()
  await chain.setGas(addressOf(signerKey), GAS)
  secrets.add('the signer’s key', signerKey.slice(2))
  secrets.add('an RPC endpoint', node.url)
  const payTo = addressOf(randomKey())
  const { routes, sign: signFor, referenceOf, referenceOfKey, transactionOf } = scheme
  return {
    routes,
    client: (key, transport) => scheme.client(key, transport, chain.rpcUrl),
    sign: signFor,
    referenceOf,
    referenceOfKey,
    transactionOf,
    catalogYaml: `x402: { networks: [base], ${scheme.terms}, timeout: 60s }`,
    env: { ...scheme.env, PAY_TO: payTo, SETTLER_PRIVATE_KEY: signerKey, RPC_URL_8453: node.url },
    header: 'payment-signature',
    wallet: async () => {
      const key = randomKey()
      await chain.mint(addressOf(key), WALLET_BALANCE)
      await scheme.prepare(onchain, addressOf(key))
      return key
    },
    charges: (records) => scheme.charges({ onchain, rpcUrl: chain.rpcUrl, payTo, records }),
    receiptOf: (answer, event) => {
      if (answer.headers.has('payment-response'))
        return scheme.receiptIn(readHeader(answer, 'payment-response'))
      const told: Json | undefined =
        event === undefined ? undefined : at(JSON.parse(event), 'x402/payment-response')
      return isJsonObject(told) ? scheme.receiptIn(told) : undefined
    },
    tick: async () => {
      await onchain.setMining('manual')
      await delay(random.between(20, BLOCK_MS))
      await onchain.mine()
    },
    broadcastsOf,
    standingOf: (transaction) => standingOf(chain.rpcUrl, transaction),
    reorganize: (depth) => reorganize({ rpcUrl: chain.rpcUrl, depth, mining: 'manual', random, rawOf }),
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

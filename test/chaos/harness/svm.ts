import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createKeyPairSignerFromPrivateKeyBytes,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  type KeyPairSigner,
} from '@solana/kit'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { SOLANA_DEVNET_CAIP2 } from '@x402/svm'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import { encodeBase58 } from '../../../src/engine/base/base58.ts'
import type { Json, JsonObject } from '../../../src/engine/base/json.ts'
import { startSvmChain, type SvmChain } from '../../../src/sandbox/svm/chain.ts'
import { at, items } from '../../support/documents.ts'
import { challengeOf, encode, randomKey, readHeader, type Hex } from '../../support/payment.ts'
import { openRpcProxy } from '../../support/rpc-proxy.ts'
import type { Secrets } from '../../support/secrets.ts'
import { svmTokenAccount } from '../../support/svm.ts'
import type { Charge, PaymentMethod } from './payment-method.ts'
import { FIXED_ROUTES } from './routes.ts'
import type { SeededRandom } from './seeded-random.ts'

/** Delay of every call to the node, so that kills meet calls in flight. */
const CALL_MS = 50
const WALLET_BALANCE = 10n ** 12n
const LAMPORTS = 10n ** 12n
const SEARCHED_AT_ONCE = 1_000

/** Scheme exact of x402 on Solana, settled by a fee payer of the server. Its chain undoes no block. */
export async function openSvm(random: SeededRandom, secrets: Secrets): Promise<PaymentMethod> {
  const chain = await startSvmChain({ blockMs: 400 })
  const node = await openRpcProxy(chain.rpcUrl)
  node.onCall(async () => {
    await delay(random.between(0, CALL_MS))
  })
  const [feePayerKey, sellerKey] = [randomKey(), randomKey()]
  const [feePayer, seller] = await Promise.all([accountOf(feePayerKey), accountOf(sellerKey)])
  await chain.setLamports(feePayer.address, LAMPORTS)
  await chain.giveTokens(seller.address, 0n)
  const pair = Buffer.concat([
    bytesOf(feePayerKey),
    Buffer.from(await crypto.subtle.exportKey('raw', feePayer.keyPair.publicKey)),
  ])
  secrets.add('the key of the fee payer', encodeBase58(pair))
  secrets.add('an RPC endpoint', node.url)
  const clientOf = async (key: Hex): Promise<x402Client> => {
    const scheme = new ExactSvmScheme(await accountOf(key), { rpcUrl: chain.rpcUrl })
    return new x402Client().register(SOLANA_DEVNET_CAIP2, scheme)
  }
  return {
    routes: FIXED_ROUTES,
    catalogYaml: 'x402: { networks: [solana-devnet] }',
    env: {
      ALLOW_TEST_NETWORKS: '1',
      PAY_TO: seller.address,
      SOLANA_FEE_PAYER_KEY: encodeBase58(pair),
      RPC_URL_SOLANA_DEVNET: node.url,
    },
    header: 'payment-signature',
    wallet: async () => {
      const key = randomKey()
      const { address } = await accountOf(key)
      await chain.giveTokens(address, WALLET_BALANCE)
      return key
    },
    client: (key, transport) => async (input, init) =>
      wrapFetchWithPayment(transport, await clientOf(key))(input, init),
    sign: async (url, key, transport) => {
      const client = await clientOf(key)
      const payload = await client.createPaymentPayload((await challengeOf(url, transport)) as never)
      return encode(payload as unknown as JsonObject)
    },
    referenceOf: (header) => {
      const payment: Json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
      return read(textOf(at(payment, 'payload', 'transaction'))).reference
    },
    transactionOf: ({ transaction }) => transaction,
    referenceOfKey: (key) => key.slice(key.lastIndexOf(':') + 1),
    charges: async () => chargesTo(chain, await svmTokenAccount(seller.address)),
    receiptOf: (answer) => {
      if (!answer.headers.has('payment-response')) return undefined
      const { transaction } = readHeader(answer, 'payment-response')
      return typeof transaction === 'string' ? transaction : undefined
    },
    tick: async () => {
      await delay(1_000)
    },
    broadcastsOf: () => [],
    standingOf: async () => 'not asked',
    reorganize: async () => undefined,
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

function bytesOf(key: Hex): Buffer {
  return Buffer.from(key.slice(2), 'hex')
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function accountOf(key: Hex): Promise<KeyPairSigner> {
  return createKeyPairSignerFromPrivateKeyBytes(bytesOf(key))
}

/** The reference of a payment, with or without the signature of the fee payer, and what its transfer moves. */
function read(transaction: string): Pick<Charge, 'reference' | 'amount'> {
  const { messageBytes } = getTransactionDecoder().decode(Buffer.from(transaction, 'base64'))
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes)
  const instructions = 'instructions' in message ? message.instructions : []
  const data = Buffer.from(instructions[2]?.data ?? [])
  return {
    reference: `0x${createHash('sha256').update(Buffer.from(messageBytes)).digest('hex')}`,
    amount: data.readBigUInt64LE(1),
  }
}

async function chargesTo(chain: SvmChain, tokenAccount: string): Promise<Charge[]> {
  const charges: Charge[] = []
  let before: string | undefined
  for (;;) {
    const options = { limit: SEARCHED_AT_ONCE, ...(before === undefined ? {} : { before }) }
    const found = items(await chain.call('getSignaturesForAddress', [tokenAccount, options]))
    for (const each of found) {
      const signature = textOf(at(each, 'signature'))
      if (at(each, 'err') !== null) continue
      const answer = await chain.call('getTransaction', [
        signature,
        { encoding: 'base64', maxSupportedTransactionVersion: 0 },
      ])
      const [bytes] = items(at(answer, 'transaction'))
      if (typeof bytes === 'string') charges.push({ ...read(bytes), transaction: signature })
    }
    before = textOf(at(found.at(-1), 'signature'))
    if (found.length < SEARCHED_AT_ONCE) return charges
  }
}

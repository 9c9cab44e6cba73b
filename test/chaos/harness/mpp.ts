import { setTimeout as delay } from 'node:timers/promises'
import { Challenge, Receipt } from 'mppx'
import { createPublicClient, http, keccak256, parseAbiItem, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openRpcProxy } from '../../support/rpc-proxy.ts'
import { addressOf, randomKey } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import {
  openCredential,
  PATH_USD,
  signTempo,
  startTempo,
  stockPayer,
  TEMPO_CHAIN,
} from '../../support/tempo.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { PaymentMethod } from './payment-method.ts'
import { noteTransactions, reorganize, standingOf } from './reorganization.ts'
import { FIXED_ROUTES } from './routes.ts'

/** Delay of every call to the node, so that kills meet calls in flight. */
const CALL_MS = 100

const TRANSFER = parseAbiItem(
  'event TransferWithMemo(address indexed from, address indexed to, uint256 amount, bytes32 indexed memo)',
)

export async function openMpp(random: SeededRandom, secrets: Secrets): Promise<PaymentMethod> {
  const chain = await startTempo()
  const node = await openRpcProxy(chain.rpcUrl)
  const { rawOf, broadcastsOf } = noteTransactions(node, chain.rpcUrl)
  node.onCall(async () => {
    await delay(random.between(0, CALL_MS))
  })
  const recipient = addressOf(randomKey())
  const secretKey = randomKey().slice(2)
  secrets.add('the key of challenges', secretKey)
  secrets.add('an RPC endpoint', node.url)
  const client = createPublicClient({ transport: http(chain.rpcUrl, { maxResponseBodySize: false }) })
  return {
    routes: FIXED_ROUTES,
    catalogYaml: `mpp: { method: tempo, intent: charge, chain: ${TEMPO_CHAIN}, currency: '${PATH_USD}' }`,
    env: { MPP_RECIPIENT: recipient, MPP_SECRET_KEY: secretKey, [`RPC_URL_${TEMPO_CHAIN}`]: node.url },
    header: 'authorization',
    wallet: () => chain.wallet(),
    client: (key, transport) =>
      stockPayer(chain.rpcUrl, privateKeyToAccount(key), transport).fetch as typeof fetch,
    sign: async (url, key, transport) => {
      const response = await transport(url)
      return signTempo(chain.rpcUrl, key, Challenge.fromResponse(response))
    },
    referenceOf: (header) => referenceOf(String(openCredential(header).challenge['id'])),
    transactionOf: ({ transaction }) => transaction,
    referenceOfKey: (key) => referenceOf(key.slice(key.indexOf(':') + 1)),
    charges: async () => {
      const logs = await client.getLogs({
        address: PATH_USD,
        event: TRANSFER,
        args: { to: recipient },
        fromBlock: 0n,
        strict: true,
      })
      return logs.map(({ args: { memo, amount }, transactionHash }) => ({
        reference: memo.slice(-REFERENCE_DIGITS),
        transaction: transactionHash,
        amount,
      }))
    },
    receiptOf: (answer) =>
      answer.headers.has('payment-receipt') ? Receipt.fromResponse(answer).reference : undefined,
    tick: async () => {
      await delay(1_000)
    },
    broadcastsOf,
    standingOf: (transaction) => standingOf(chain.rpcUrl, transaction),
    reorganize: (depth) => reorganize({ rpcUrl: chain.rpcUrl, depth, mining: { seconds: 1 }, random, rawOf }),
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

const REFERENCE_DIGITS = 14

/** The end of the memo that ties a transfer to its challenge. */
function referenceOf(challengeId: string): string {
  return keccak256(stringToHex(challengeId)).slice(2, 2 + REFERENCE_DIGITS)
}

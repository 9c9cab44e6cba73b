import { setTimeout as delay } from 'node:timers/promises'
import { Challenge, Receipt } from 'mppx'
import { createPublicClient, http, keccak256, parseAbiItem, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openNodeProxy } from '../../support/node-proxy.ts'
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
import type { Dice } from './dice.ts'
import type { Money } from './money.ts'

/** Between a call to the node and its answer there is time for a kill. */
const CALL_MS = 100

const TRANSFER = parseAbiItem(
  'event TransferWithMemo(address indexed from, address indexed to, uint256 amount, bytes32 indexed memo)',
)

export async function openMpp(dice: Dice, secrets: Secrets): Promise<Money> {
  const chain = await startTempo()
  const node = await openNodeProxy(chain.rpcUrl)
  node.onCall(async () => {
    await delay(dice.between(0, CALL_MS))
  })
  const recipient = addressOf(randomKey())
  const secretKey = randomKey().slice(2)
  secrets.keep('the key of challenges', secretKey)
  secrets.keep('an RPC endpoint', node.url)
  const looking = createPublicClient({ transport: http(chain.rpcUrl) })
  return {
    terms: `mpp: { method: tempo, intent: charge, chain: ${TEMPO_CHAIN}, currency: '${PATH_USD}' }`,
    env: { MPP_RECIPIENT: recipient, MPP_SECRET_KEY: secretKey, [`RPC_URL_${TEMPO_CHAIN}`]: node.url },
    header: 'authorization',
    wallet: () => chain.wallet(),
    client: (key, transport) =>
      stockPayer(chain.rpcUrl, privateKeyToAccount(key), transport).fetch as typeof fetch,
    sign: async (url, key, transport) => {
      const response = await transport(url)
      return signTempo(chain.rpcUrl, key, Challenge.fromResponse(response))
    },
    markOf: (header) => markOf(String(openCredential(header).challenge['id'])),
    markOfKey: (key) => markOf(key.slice(key.indexOf(':') + 1)),
    charges: async () => {
      const logs = await looking.getLogs({
        address: PATH_USD,
        event: TRANSFER,
        args: { to: recipient },
        fromBlock: 0n,
        strict: true,
      })
      return logs.map(({ args: { memo }, transactionHash }) => ({
        mark: memo.slice(-MARK_DIGITS),
        transaction: transactionHash,
      }))
    },
    receiptOf: (answer) =>
      answer.headers.has('payment-receipt') ? Receipt.fromResponse(answer).reference : undefined,
    tick: async () => {
      await delay(1_000)
    },
    close: async () => {
      await node.close()
      await chain.stop()
    },
  }
}

const MARK_DIGITS = 14

/** The end of the memo that ties a transfer to its challenge. */
function markOf(challengeId: string): string {
  return keccak256(stringToHex(challengeId)).slice(2, 2 + MARK_DIGITS)
}

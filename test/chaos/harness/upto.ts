import { x402UptoPermit2ProxyABI } from '@x402/evm'
import { createPublicClient, decodeFunctionData, http, numberToHex, parseAbiItem } from 'viem'
import { challengeOf, type Hex } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import { signPermit, uptoFetch } from '../../support/upto.ts'
import type { Charge, PaymentMethod } from './payment-method.ts'
import { FIXED_ROUTES, METERED_ROUTES } from './routes.ts'
import type { SeededRandom } from './seeded-random.ts'
import { nonceInKey, openX402, transactionIn, type SchemeMethod } from './x402.ts'

const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
const MUCH = 2n ** 255n

const UPTO: SchemeMethod = {
  routes: [...FIXED_ROUTES, ...METERED_ROUTES],
  terms: 'schemes: [upto]',
  env: {},
  prepare: (onchain, wallet) => onchain.approvePermit2(wallet, MUCH),
  client: (key, transport) => uptoFetch(key, undefined, transport),
  sign: async (url, key, transport) => (await signPermit(await challengeOf(url, transport), key)).header,
  referenceOf: (header) => {
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as {
      readonly payload: { readonly permit2Authorization: { readonly nonce: string } }
    }
    return referenceOf(BigInt(payload.permit2Authorization.nonce))
  },
  charges: ({ rpcUrl, payTo }) => chargesTo(rpcUrl, payTo),
  referenceOfKey: nonceInKey,
  receiptIn: transactionIn,
  transactionOf: ({ transaction }) => transaction,
}

/** The scheme that charges at most what was signed, for fixed and metered prices. */
export function openUpto(random: SeededRandom, secrets: Secrets): Promise<PaymentMethod> {
  return openX402(random, secrets, UPTO)
}

/** Permit2 logs no nonce: the call of the proxy has it. */
async function chargesTo(rpcUrl: string, to: Hex): Promise<Charge[]> {
  const transport = http(rpcUrl, { batch: true, maxResponseBodySize: false })
  const client = createPublicClient({ transport })
  const logs = await client.getLogs({ event: TRANSFER, args: { to }, fromBlock: 0n, strict: true })
  return Promise.all(
    logs.map(async ({ transactionHash: transaction, args: { value: amount } }) => {
      const { input } = await client.getTransaction({ hash: transaction })
      const { functionName, args } = decodeFunctionData({ abi: x402UptoPermit2ProxyABI, data: input })
      if (functionName !== 'settle') throw new Error(`${transaction} is no settlement: ${functionName}`)
      const [{ nonce }] = args
      return { reference: referenceOf(nonce), transaction, amount }
    }),
  )
}

function referenceOf(nonce: bigint): string {
  return numberToHex(nonce, { size: 32 })
}

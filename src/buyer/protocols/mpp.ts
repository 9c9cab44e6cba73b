import { Challenge, Credential, Mcp } from '../../vendor/mppx.ts'
import { isAddress } from '../../engine/base/address.ts'
import { isJsonObject } from '../../engine/base/json.ts'
import { toMicros } from '../../engine/base/money.ts'
import {
  decodeJson,
  metaOf,
  type EvmSigner,
  type Offer,
  type PayingProtocol,
  type Reply,
  readHash,
  type Signing,
} from './paying-protocol.ts'

/** A Tempo chain, and the tokens on it that are dollars of six decimals. */
interface TempoNetwork {
  readonly chainId: number
  readonly title: string
  /** Symbols by address in lower case. */
  readonly tokens: ReadonlyMap<string, string>
}

const PATH_USD = ['0x20c0000000000000000000000000000000000000', 'pathUSD'] as const
const USDC_E = ['0x20c000000000000000000000b9537d11c60e8b50', 'USDC.e'] as const

const TEMPO_NETWORKS: readonly TempoNetwork[] = [
  { chainId: 4217, title: 'Tempo', tokens: new Map([PATH_USD, USDC_E]) },
  { chainId: 42431, title: 'Tempo Moderato', tokens: new Map([PATH_USD]) },
]

/** MPP, method tempo, intent charge, pull mode: the seller carries out the transaction that is signed here. */
export const mpp: PayingProtocol = {
  name: 'mpp',
  readOffers: (reply) =>
    challengesIn(reply).flatMap((challenge) => {
      const charge = readCharge(challenge)
      return charge === undefined ? [] : [offerOf(charge)]
    }),
  readReceipt: (reply) => {
    const receipt =
      reply.kind === 'tool'
        ? metaOf(reply, Mcp.receiptMetaKey)
        : decodeJson(reply.headers.get('payment-receipt') ?? '')
    const isSuccess = isJsonObject(receipt) && receipt['status'] === 'success'
    return isSuccess ? { transaction: readHash(receipt['reference']) } : undefined
  },
}

/** The challenges of a 402; none when a header contains a malformed one. */
function challengesIn(reply: Reply): Challenge.Challenge[] {
  if (reply.kind === 'http') {
    try {
      return Challenge.deserializeList(reply.headers.get('www-authenticate') ?? '')
    } catch {
      return []
    }
  }
  const required = metaOf(reply, Mcp.paymentRequiredMetaKey)
  const listed = isJsonObject(required) ? required['challenges'] : undefined
  return (Array.isArray(listed) ? listed : []).flatMap((each: unknown) => {
    const challenge = Challenge.Schema.safeParse(each)
    return challenge.success ? [challenge.data] : []
  })
}

/** A challenge that can be paid here. */
interface Charge {
  readonly network: TempoNetwork
  readonly symbol: string
  readonly amount: bigint
  readonly recipient: `0x${string}`
  readonly fee: Offer['fee']
  readonly challenge: Challenge.Challenge
}

function readCharge(challenge: Challenge.Challenge): Charge | undefined {
  const { realm, method, intent, request } = challenge
  if (realm === '' || method !== 'tempo' || intent !== 'charge') return undefined
  const { amount, currency, recipient, methodDetails } = request
  if (typeof amount !== 'string' || !/^[1-9]\d{0,20}$/.test(amount)) return undefined
  if (typeof recipient !== 'string' || !isAddress(recipient)) return undefined
  if (!isJsonObject(methodDetails)) return undefined
  const { chainId, supportedModes, feePayer, testnet: _, ...others } = methodDetails
  // Further terms, such as splits and routes over other tokens, would move money that is not shown here.
  if (Object.keys(others).length > 0) return undefined
  if (supportedModes !== undefined && !(Array.isArray(supportedModes) && supportedModes.includes('pull')))
    return undefined
  if (feePayer !== undefined && typeof feePayer !== 'boolean') return undefined
  const network = TEMPO_NETWORKS.find((each) => each.chainId === chainId)
  // A token we do not know could be worth anything.
  const symbol = typeof currency === 'string' ? network?.tokens.get(currency.toLowerCase()) : undefined
  if (network === undefined || symbol === undefined) return undefined
  const fee = feePayer === true ? 'seller' : 'payer'
  return { network, symbol, amount: BigInt(amount), recipient, fee, challenge }
}

function offerOf(charge: Charge): Offer {
  const { network, symbol, amount, recipient, fee } = charge
  return {
    protocol: 'mpp',
    network: `eip155:${network.chainId}`,
    money: `${symbol} on ${network.title}`,
    amount: toMicros(amount),
    amountIs: 'price',
    payTo: recipient,
    fee,
    account: 'evm',
    sign: (signer) => sign(charge, signer),
  }
}

async function sign(charge: Charge, { key, rpcUrl, now }: EvmSigner): Promise<Signing> {
  const { chainId, title } = charge.network
  const { expires } = charge.challenge
  if (expires !== undefined && !(Date.parse(expires) > now.getTime()))
    return unsigned('the offer has expired: ask again, or set the clock of this machine')
  const url = rpcUrl(chainId)
  return url === undefined
    ? unsigned(`set RPC_URL_${chainId}: a node of ${title} prepares the transaction`)
    : createCredential(charge, key, url)
}

/** Signs a transfer whose memo binds it to the challenge; the node fills in gas and fees. */
async function createCredential(charge: Charge, key: EvmSigner['key'], rpcUrl: string): Promise<Signing> {
  const { network, recipient, challenge } = charge
  const { chainId, title } = network
  const { Mppx, tempo } = await import('../../vendor/mppx-client.ts')
  const { BaseError, createClient, http, HttpRequestError, TimeoutError } =
    await import('../../vendor/viem.ts')
  const { tempo: tempoChain } = await import('../../vendor/viem-tempo-chains.ts')
  const { privateKeyToAccount } = await import('../../vendor/viem-accounts.ts')
  const account = privateKeyToAccount(key)
  const chain = { ...tempoChain, id: chainId, rpcUrls: { default: { http: [rpcUrl] } } }
  const client = createClient({ chain, transport: http(rpcUrl) })
  const method = tempo.charge({
    account,
    getClient: () => client,
    expectedChainId: chainId,
    expectedRecipients: [recipient],
    mode: 'pull',
  })
  const mppx = Mppx.create({ methods: [method], polyfill: false })
  try {
    const credential = await mppx.createCredential(alone(challenge))
    const parsed: unknown = Credential.deserialize(credential)
    return {
      kind: 'signed',
      payer: account.address,
      headers: { [Challenge.credentialHeader(challenge).toLowerCase()]: credential },
      meta: isJsonObject(parsed) ? { [Mcp.credentialMetaKey]: parsed } : {},
    }
  } catch (fault) {
    // Messages of the libraries contain endpoints and calls, so they are not passed on.
    const isSilence = (cause: unknown): boolean =>
      cause instanceof HttpRequestError || cause instanceof TimeoutError
    const silent = fault instanceof BaseError && fault.walk(isSilence) !== null
    return unsigned(
      silent
        ? `the node of ${title} does not answer: see RPC_URL_${chainId}`
        : `${title} refuses this payment: ask again, and check what ${account.address} holds there`,
    )
  }
}

/** The challenge that was shown, written again from its parsed form, so that it cannot be read in two ways. */
function alone(challenge: Challenge.Challenge): Response {
  return new Response(null, {
    status: 402,
    headers: { 'www-authenticate': Challenge.serialize(challenge) },
  })
}

function unsigned(reason: string): Signing {
  return { kind: 'unsigned', reason }
}

import { isAddress, isJsonObject, type JsonObject, toMicros } from '../../engine/internal.ts'
import {
  decodeJson,
  metaOf,
  type Offer,
  type PayingProtocol,
  type Reply,
  readHash,
  type Signer,
  type Signing,
} from './protocol.ts'

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

/** One challenge of a WWW-Authenticate header; names of schemes and parameters are in lower case. */
interface Challenge {
  readonly scheme: string
  readonly parameters: ReadonlyMap<string, string>
}

/** A parameter, or a scheme with the token68 that may follow it, and the separators before them. */
const ITEM = (() => {
  const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
  const end = '(?=[ \\t]*(?:,|$))'
  const parameter = `(${token})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${token}))${end}`
  const scheme = `(${token})(?:[ \\t]+[A-Za-z0-9._~+/-]+=*${end}|(?=[ \\t,]|$))`
  // Sticky: it ends at the first thing that is neither.
  return new RegExp(`[ \\t,]*(?:${parameter}|${scheme})`, 'gy')
})()

/**
 * Reads a WWW-Authenticate header, several lines merged into one as well (RFC 9110 §11.6.1).
 *
 * Left out are the challenge in which it becomes unreadable, all that follow, and one that names a parameter twice.
 *
 * @example parseChallenges('Bearer realm="a, b", Payment id="1", method=tempo') // two challenges
 */
export function parseChallenges(header: string): Challenge[] {
  const text = header.replace(/[ \t,]+$/, '')
  const found: { readonly scheme: string; readonly parameters: [string, string][] }[] = []
  let read = 0
  for (const [item, name, quoted, plain, scheme] of text.matchAll(ITEM)) {
    read += item.length
    if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), parameters: [] })
    if (name !== undefined) {
      found.at(-1)?.parameters.push([name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''])
    }
  }
  if (read < text.length) found.pop()
  return found.flatMap(({ scheme, parameters }) => {
    const once = new Map(parameters)
    return once.size === parameters.length ? [{ scheme, parameters: once }] : []
  })
}

/** MPP, method tempo, intent charge, pull mode: the seller carries out the transaction that is signed here. */
export const mpp: PayingProtocol = {
  name: 'mpp',
  readOffer: (reply) => {
    for (const parameters of challengesIn(reply)) {
      const charge = readCharge(parameters)
      if (charge !== undefined) return offerOf(charge)
    }
    return undefined
  },
  readReceipt: (reply) => {
    const receipt =
      reply.kind === 'tool'
        ? metaOf(reply, 'org.paymentauth/receipt')
        : decodeJson(reply.headers.get('payment-receipt') ?? '')
    return isJsonObject(receipt) && receipt['status'] === 'success'
      ? readHash(receipt['reference'])
      : undefined
  },
}

/** Parameters of every challenge; in MCP they are members of an object, and `request` is one itself. */
function challengesIn(reply: Reply): ReadonlyMap<string, string>[] {
  if (reply.kind === 'http') {
    const challenges = parseChallenges(reply.headers.get('www-authenticate') ?? '')
    return challenges.filter(({ scheme }) => scheme === 'payment').map(({ parameters }) => parameters)
  }
  const required = metaOf(reply, 'org.paymentauth/payment-required')
  const challenges = isJsonObject(required) ? required['challenges'] : undefined
  return (Array.isArray(challenges) ? challenges : []).flatMap((challenge: unknown) => {
    if (!isJsonObject(challenge)) return []
    const texts = Object.entries(challenge).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : Buffer.from(JSON.stringify(value)).toString('base64url'),
    ])
    return [new Map(texts)]
  })
}

/** A challenge that is understood. */
interface Charge {
  readonly network: TempoNetwork
  readonly symbol: string
  readonly amount: bigint
  readonly recipient: `0x${string}`
  readonly fee: Offer['fee']
  /** As sent, since credentials echo them. */
  readonly parameters: ReadonlyMap<string, string>
}

function readCharge(parameters: ReadonlyMap<string, string>): Charge | undefined {
  if (!parameters.get('id') || !parameters.get('realm')) return undefined
  if (parameters.get('method') !== 'tempo' || parameters.get('intent') !== 'charge') return undefined
  const request = decodeJson(parameters.get('request') ?? '')
  if (!isJsonObject(request)) return undefined
  const { amount, currency, recipient, methodDetails } = request
  if (typeof amount !== 'string' || !/^[1-9]\d{0,20}$/.test(amount)) return undefined
  if (typeof recipient !== 'string' || !isAddress(recipient)) return undefined
  if (!isJsonObject(methodDetails)) return undefined
  const { chainId, supportedModes, feePayer, ...others } = methodDetails
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
  return { network, symbol, amount: BigInt(amount), recipient, fee, parameters }
}

function offerOf(charge: Charge): Offer {
  const { network, symbol, amount, recipient, fee } = charge
  return {
    protocol: 'mpp',
    network: `eip155:${network.chainId}`,
    money: `${symbol} on ${network.title}`,
    amount: toMicros(amount),
    payTo: recipient,
    fee,
    sign: (signer) => sign(charge, signer),
  }
}

async function sign(charge: Charge, { key, rpcUrl, now }: Signer): Promise<Signing> {
  const { chainId, title } = charge.network
  const expires = charge.parameters.get('expires')
  if (expires !== undefined && !(Date.parse(expires) > now.getTime()))
    return unsigned('the offer has expired: ask again, or set the clock of this machine')
  const url = rpcUrl(chainId)
  return url === undefined
    ? unsigned(`set RPC_URL_${chainId}: a node of ${title} prepares the transaction`)
    : createCredential(charge, key, url)
}

/** Signs a transfer whose memo binds it to the challenge; the node fills in gas and fees. */
async function createCredential(charge: Charge, key: Signer['key'], rpcUrl: string): Promise<Signing> {
  const { network, recipient, parameters } = charge
  const { chainId, title } = network
  const { Mppx, tempo } = await import('mppx/client')
  const { BaseError, createClient, http, HttpRequestError, TimeoutError } = await import('viem')
  const { tempo: tempoChain } = await import('viem/tempo/chains')
  const { privateKeyToAccount } = await import('viem/accounts')
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
    const authorization = await mppx.createCredential(alone(parameters))
    const meta = { 'org.paymentauth/credential': credentialOf(authorization) }
    return { kind: 'signed', payer: account.address, headers: { authorization }, meta }
  } catch (fault) {
    // What the libraries say names endpoints and calls: it stays here.
    const isSilence = (cause: unknown): boolean =>
      cause instanceof HttpRequestError || cause instanceof TimeoutError
    const silent = fault instanceof BaseError && fault.walk(isSilence) !== null
    return unsigned(
      silent
        ? `the node of ${title} does not answer: see RPC_URL_${chainId}`
        : `${title} takes no such payment: ask again, and see what ${account.address} holds there`,
    )
  }
}

/** The credential of an Authorization header as JSON, in which the request of its challenge is JSON too. */
function credentialOf(authorization: string): JsonObject {
  const credential = decodeJson(authorization.replace(/^Payment +/i, ''))
  const challenge = isJsonObject(credential) ? credential['challenge'] : undefined
  if (!isJsonObject(credential) || !isJsonObject(challenge)) throw new Error('this is no credential')
  const { request: encoded } = challenge
  const request = typeof encoded === 'string' ? decodeJson(encoded) : undefined
  return isJsonObject(request) ? { ...credential, challenge: { ...challenge, request } } : credential
}

function unsigned(reason: string): Signing {
  return { kind: 'unsigned', reason }
}

/** The challenge that was shown, serialized again from its parsed form, so that it cannot be read in two ways. */
function alone(parameters: ReadonlyMap<string, string>): Response {
  const written = [...parameters].map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&')}"`)
  return new Response(null, {
    status: 402,
    headers: { 'www-authenticate': `Payment ${written.join(', ')}` },
  })
}

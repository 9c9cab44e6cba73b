import { privateKeyToAccount } from '../../vendor/viem-accounts.ts'
import { isAddress } from '../../engine/base/address.ts'
import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { toMicros } from '../../engine/base/money.ts'
import { findNetwork, type Network } from '../../engine/base/networks.ts'
import { TRANSFER_TYPES } from '../../engine/base/transfer-types.ts'
import {
  decodeJson,
  metaOf,
  readHash,
  type Offer,
  type Reply,
  type PayingProtocol,
  type Signer,
  type Signing,
} from './paying-protocol.ts'

/** x402 v2, scheme exact (EIP-3009), on a network of the table. */
export const x402: PayingProtocol = {
  name: 'x402',
  readOffer: (reply) => {
    const required =
      reply.kind === 'tool'
        ? reply.result['structuredContent']
        : decodeJson(reply.headers.get('payment-required') ?? '')
    if (!isJsonObject(required) || required['x402Version'] !== 2 || !Array.isArray(required['accepts']))
      return undefined
    for (const accepted of required['accepts']) {
      const terms = isJsonObject(accepted) ? readTerms(accepted) : undefined
      if (terms !== undefined) return offerOf(terms, required)
    }
    return undefined
  },
  readReceipt: (reply) => {
    const receipt =
      reply.kind === 'tool'
        ? metaOf(reply, 'x402/payment-response')
        : decodeJson(reply.headers.get('payment-response') ?? '')
    return isJsonObject(receipt) && receipt['success'] === true ? readHash(receipt['transaction']) : undefined
  },
}

/** The signed receipts in the extensions of a settlement response, as JWS; undefined when there is none. */
export function readSignedReceipts(reply: Reply): Readonly<Record<string, string>> | undefined {
  const response =
    reply.kind === 'tool'
      ? metaOf(reply, 'x402/payment-response')
      : decodeJson(reply.headers.get('payment-response') ?? '')
  const extensions = isJsonObject(response) ? response['extensions'] : undefined
  if (!isJsonObject(extensions)) return undefined
  const receiptIn = (name: string): unknown => {
    const extension = extensions[name]
    const info = isJsonObject(extension) ? extension['info'] : undefined
    return isJsonObject(info) ? info['receipt'] : undefined
  }
  const [official, ratecard] = [receiptIn('offer-receipt'), receiptIn('ratecard-receipt')]
  const signature = isJsonObject(official) ? official['signature'] : undefined
  const found = {
    ...(typeof signature === 'string' && { x402: signature }),
    ...(typeof ratecard === 'string' && { ratecard }),
  }
  return Object.keys(found).length === 0 ? undefined : found
}

/** One entry of `accepts`. */
interface Terms {
  readonly network: Network
  readonly amount: bigint
  readonly payTo: `0x${string}`
  readonly timeoutSeconds: number
  /** The entry, echoed unchanged. */
  readonly accepted: JsonObject
}

function readTerms(accepted: JsonObject): Terms | undefined {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds } = accepted
  const known = typeof network === 'string' ? findNetwork(network) : undefined
  if (
    scheme !== 'exact' ||
    known === undefined ||
    typeof amount !== 'string' ||
    !/^[1-9]\d{0,20}$/.test(amount)
  )
    return undefined
  if (typeof payTo !== 'string' || !isAddress(payTo)) return undefined
  if (typeof maxTimeoutSeconds !== 'number' || !Number.isSafeInteger(maxTimeoutSeconds)) return undefined
  // A token we do not know could be worth anything.
  if (typeof asset !== 'string' || asset.toLowerCase() !== known.token.address.toLowerCase()) return undefined
  return { network: known, amount: BigInt(amount), payTo, timeoutSeconds: maxTimeoutSeconds, accepted }
}

function offerOf(terms: Terms, required: JsonObject): Offer {
  const { network, amount, payTo } = terms
  return {
    protocol: 'x402',
    network: network.id,
    money: `${network.token.symbol} on ${network.title}`,
    // Every token of the table is a dollar of six decimals.
    amount: toMicros(amount),
    payTo,
    fee: 'seller',
    sign: (signer) => sign(terms, required, signer),
  }
}

/** Signs the transfer of an offer (EIP-3009 under EIP-712) and packs it as a PaymentPayload. */
async function sign(terms: Terms, required: JsonObject, { key, now, random }: Signer): Promise<Signing> {
  const account = privateKeyToAccount(key)
  const { network, amount, payTo, timeoutSeconds, accepted } = terms
  const { token, chainId } = network
  const message = {
    from: account.address,
    to: payTo,
    value: amount,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(now.getTime() / 1000) + timeoutSeconds),
    nonce: `0x${Buffer.from(random(32)).toString('hex')}`,
  } as const
  const signature = await account.signTypedData({
    domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message,
  })
  const authorization = {
    ...message,
    value: String(message.value),
    validAfter: String(message.validAfter),
    validBefore: String(message.validBefore),
  }
  const { resource, extensions } = required
  const payload = {
    x402Version: 2,
    ...(isJsonObject(resource) ? { resource } : {}),
    accepted,
    payload: { signature, authorization },
    ...(isJsonObject(extensions) ? { extensions } : {}),
  }
  const header = Buffer.from(JSON.stringify(payload)).toString('base64')
  return {
    kind: 'signed',
    payer: account.address,
    headers: { 'payment-signature': header },
    meta: { 'x402/payment': payload },
  }
}

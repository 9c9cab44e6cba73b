import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { toMicros } from '../../engine/base/money.ts'
import {
  decodeJson,
  metaOf,
  readHash,
  readSvmSignature,
  type EvmSigner,
  type Offer,
  type PaymentReceipt,
  type Reply,
  type PayingProtocol,
  type Signing,
} from './paying-protocol.ts'
import type { ChannelTerms } from '../channels/channel.ts'
import type { ChannelOffer } from '../channels/channels.ts'
import { signPermit } from './sign-permit.ts'
import { signSvmTransfer } from './sign-svm-transfer.ts'
import { signTransfer } from './sign-transfer.ts'
import {
  readTerms,
  type EvmTerms,
  type SchemeName,
  schemeOf,
  type SignedTerms,
  type Terms,
  USUAL_SCHEMES,
} from './x402-terms.ts'

/** x402 v2 by some of its schemes, in order of preference, on a network of the table. */
export function x402By(schemes: readonly SchemeName[]): PayingProtocol {
  return {
    name: 'x402',
    readOffers: (reply) => {
      const required = paymentRequired(reply)
      if (required?.['x402Version'] !== 2 || !Array.isArray(required['accepts'])) return []
      const extensions = isJsonObject(required['extensions']) ? required['extensions'] : {}
      const offered = required['accepts'].flatMap((accepted) => {
        const terms = isJsonObject(accepted) ? readTerms(accepted, extensions) : undefined
        return terms === undefined ? [] : [terms]
      })
      return schemes.flatMap((scheme) =>
        offered.filter((terms) => schemeOf(terms) === scheme).map((terms) => offerOf(terms, required)),
      )
    },
    readReceipt: (reply) => {
      const response = settlementResponse(reply)
      return response?.['success'] === true ? readReceipt(response) : undefined
    },
    note: async (channels, meta, reply) => {
      const payment = meta['x402/payment']
      if (!isJsonObject(payment)) return { kind: 'noted' }
      return channels.note(payment, { response: settlementResponse(reply), required: paymentRequired(reply) })
    },
  }
}

/** x402 by every scheme that needs no deposit. */
export const x402 = x402By(USUAL_SCHEMES)

function paymentRequired(reply: Reply): JsonObject | undefined {
  const required =
    reply.kind === 'tool'
      ? reply.result['structuredContent']
      : decodeJson(reply.headers.get('payment-required') ?? '')
  return isJsonObject(required) ? required : undefined
}

function settlementResponse(reply: Reply): JsonObject | undefined {
  const response =
    reply.kind === 'tool'
      ? metaOf(reply, 'x402/payment-response')
      : decodeJson(reply.headers.get('payment-response') ?? '')
  return isJsonObject(response) ? response : undefined
}

function readReceipt({ transaction, amount, extra }: JsonObject): PaymentReceipt {
  const { usage, chargedAmount } = isJsonObject(extra) ? extra : {}
  // Through a channel, "amount" is that of a deposit.
  const stated = chargedAmount ?? amount
  const isAmount = typeof stated === 'string' && /^\d{1,21}$/.test(stated)
  return {
    transaction: readHash(transaction) ?? readSvmSignature(transaction),
    by: chargedAmount === undefined ? undefined : 'voucher',
    amount: isAmount ? toMicros(BigInt(stated)) : undefined,
    usage,
  }
}

/** The signed receipts in the extensions of a settlement response, as JWS; undefined when there is none. */
export function readSignedReceipts(reply: Reply): Readonly<Record<string, string>> | undefined {
  const extensions = settlementResponse(reply)?.['extensions']
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

function offerOf(terms: Terms, required: JsonObject): Offer {
  const { network, amount, payTo } = terms
  const shown = {
    protocol: 'x402',
    network: network.id,
    money: `${network.token.symbol} on ${network.title}`,
    // Every token of the table is a dollar of six decimals.
    amount: toMicros(amount),
    amountIs: schemeOf(terms) === 'exact' ? 'price' : 'ceiling',
    payTo,
    fee: 'seller',
  } as const
  if (terms.kind === 'svm')
    return {
      ...shown,
      account: 'svm',
      sign: async (signer) => pack(terms, required, await signSvmTransfer(terms, signer)),
    }
  const { settlement } = terms
  return {
    ...shown,
    account: 'evm',
    ...(settlement.scheme === 'batch-settlement' && { channel: channelOf(terms, settlement.channel) }),
    sign: async (signer) => pack(terms, required, await signTerms(terms, signer)),
  }
}

function channelOf(
  { network, payTo, amount, timeoutSeconds }: EvmTerms,
  channel: ChannelTerms,
): ChannelOffer {
  return { network, payTo, amount, timeoutSeconds, channel }
}

async function signTerms(terms: EvmTerms, signer: EvmSigner): Promise<SignedTerms> {
  const { settlement } = terms
  switch (settlement.scheme) {
    case 'exact':
      return signTransfer(terms, signer)
    case 'upto':
      return signPermit(terms, settlement, signer)
    case 'batch-settlement': {
      const signed = await signer.channels?.sign(channelOf(terms, settlement.channel))
      return signed ?? { kind: 'unsigned', reason: 'this wallet pays through no channel' }
    }
  }
}

/** Packs what was signed as a PaymentPayload. */
function pack({ accepted }: Terms, required: JsonObject, signed: SignedTerms): Signing {
  if (signed.kind === 'unsigned') return signed
  const { resource, extensions } = required
  const payload = {
    x402Version: 2,
    ...(isJsonObject(resource) ? { resource } : {}),
    accepted,
    payload: signed.payload,
    ...(isJsonObject(extensions) ? { extensions: { ...extensions, ...signed.extensions } } : {}),
  }
  const header = Buffer.from(JSON.stringify(payload)).toString('base64')
  return {
    kind: 'signed',
    payer: signed.payer,
    headers: { 'payment-signature': header },
    meta: { 'x402/payment': payload },
    ...(signed.deposit === undefined ? {} : { deposit: toMicros(signed.deposit) }),
  }
}

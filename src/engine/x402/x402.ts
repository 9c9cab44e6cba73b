import type { Endpoint, Service } from '../catalog/catalog.ts'
import { CANNOT_LOOK } from '../chains/evm/finality.ts'
import type { CorrectedOffer, ErrorCode, Refusal } from '../base/errors.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'
import { isSuccessStatus } from '../base/success-status.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { exampleAmount, fixedPrice } from '../payment/call-price.ts'
import type { Challenge } from '../payment/challenge.ts'
import { createTokens } from '../payment/random-token.ts'
import type { Action, Detection, Payment, PaymentProtocol } from '../payment/payment.ts'
import type { Protocol } from '../payment/protocol.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../payment/settlement.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import type { Listing } from './listing.ts'
import { receiptExtensions } from './receipt-extensions.ts'
import {
  readBase64,
  IDENTIFIER,
  readPayload,
  VERSION_2,
  type Decoded,
  type PaymentPayload,
} from './payload.ts'
import { priceKindOf, settleOrderOf, type NetworkOffer, type PriceKind } from './requirements.ts'
import type { Scheme, SchemeAction, SchemePayment } from './scheme.ts'
import { failureInV1, isOfV1, PAYMENT_V1, readV1, RESPONSE_V1, settlementInV1 } from './v1.ts'
import { createChallenge, MCP_EXTENSION } from './x402-challenge.ts'

interface X402Settings {
  readonly service: Service
  readonly baseUrl: string
  /** In order of preference; no two have the same name and know the same network. */
  readonly schemes: readonly Scheme[]
  /** CAIP-2 ids in order of preference, for offers of one scheme. Default: as the schemes have them. */
  readonly networks?: readonly string[] | undefined
  /** Whether clients of version 1 are served too. */
  readonly v1: boolean
  /** Undefined: no receipts are signed. */
  readonly receipts?: ReceiptSigner | undefined
  readonly random: (bytes: number) => Uint8Array
}

/** x402: the headers, and what is the same for all schemes. */
export function createX402({
  service,
  baseUrl,
  schemes,
  networks = [],
  v1,
  receipts,
  random,
}: X402Settings): Protocol {
  const offers = inOrder(schemes, networks)
  const recent = (): readonly CorrectedOffer[] => schemes.flatMap((scheme) => scheme.recent?.() ?? [])
  const settings = { service, baseUrl, offers, recent, v1, nextToken: createTokens(random) }
  const listings = new WeakMap<Endpoint, Listing>()
  const challenge = (endpoint: Endpoint, amount = fixedPrice(endpoint)): Challenge | undefined => {
    const kind = priceKindOf(endpoint)
    if (amount === undefined || !offers.some(({ prices }) => prices.includes(kind))) return undefined
    const made = createChallenge(endpoint, amount, settings)
    listings.set(endpoint, made.listing)
    return made
  }
  /** A payment may come before its endpoint was asked for without one. */
  const listingOf = (endpoint: Endpoint): Listing | undefined => {
    if (!listings.has(endpoint)) challenge(endpoint, exampleAmount(endpoint.operation))
    return listings.get(endpoint)
  }
  const schemeOf: FindScheme = (name, network) =>
    schemes.find((scheme) => scheme.name === name && scheme.knows(network))
  const responseTo = (record: PaymentRecord, receipt: Receipt, status: number): JsonObject | undefined => {
    const counted = withUsage(record, receipt)
    const scheme = schemeOf(record.scheme, record.network)
    return scheme?.responseOf === undefined
      ? settlementResponse(counted)
      : scheme.responseOf(record, counted, status)
  }
  /** `form`: this protocol, in the version in which the payment came and is answered. */
  const take = (decoded: Decoded, form: PaymentProtocol): Detection => {
    if (decoded.kind === 'malformed') return decoded
    const { payload } = decoded
    const { scheme: name, network } = payload.accepted
    const scheme = schemeOf(name, network)
    if (scheme === undefined)
      return { kind: 'refused', code: 'no_matching_requirements', detail: NOT_OFFERED }
    const found = scheme.decode(payload)
    switch (found.kind) {
      case 'payment': {
        const payment = paymentOf(form, scheme, payload, found.payment, listingOf)
        return { kind: 'payment', payment }
      }
      case 'action':
        return { kind: 'action', action: actionOf(found.action) }
      default:
        return found
    }
  }
  const answers = settlementAnswers(
    { header: RESPONSE, settled: responseTo, failed: failureResponse },
    receipts,
  )
  const protocol: Protocol = {
    name: 'x402',
    takesActions: schemes.some(({ takesActions, offers }) => takesActions === true && offers.length > 0),
    // A signed payment contains its own validity.
    longestWork: Infinity,
    payerKeys: (text) => [...new Set(schemes.flatMap((scheme) => scheme.payerKey(text) ?? []))],
    detect: ({ 'payment-signature': header, [PAYMENT_V1]: older }) => {
      if (header !== undefined && older !== undefined) return TWO_VERSIONS
      if (header !== undefined) return readHeader(header, takeV2)
      if (older === undefined) return { kind: 'none' }
      return v1 ? readHeader(older, takeV1) : NO_V1
    },
    tools: {
      capabilities: { extensions: { [MCP_EXTENSION]: {} } },
      detect: ({ [META_PAYMENT]: sent }) => {
        if (sent === undefined) return { kind: 'none' }
        const takeAny = (payment: unknown): Detection =>
          v1 && isOfV1(payment) ? takeV1(payment) : takeV2(payment)
        // Some clients send the text of the header.
        return typeof sent === 'string' ? readBase64(sent, takeAny) : takeAny(sent)
      },
      ...answers.tools,
    },
    challenge,
    ...finishedBy(schemeOf),
    receiptHeaders: answers.receiptHeaders,
    failureHeaders: answers.failureHeaders,
    background: async () => {
      await Promise.all(schemes.map(async (scheme) => scheme.background?.()))
    },
    leave: async () => {
      await Promise.all(schemes.map(async (scheme) => scheme.leave?.()))
    },
  }
  const inV1: PaymentProtocol = {
    ...protocol,
    ...settlementAnswers(
      { header: RESPONSE_V1, settled: (_, receipt) => settlementInV1(receipt), failed: failureInV1 },
      receipts,
    ),
  }
  const takeV2 = (payment: unknown): Detection => take(readPayload(payment), protocol)
  const takeV1 = (payment: unknown): Detection => take(readV1(payment), inV1)
  return protocol
}

type FindScheme = (name: string, network: string) => Scheme | undefined

/** Has each payment finished by the scheme that has taken it. */
function finishedBy(
  schemeOf: FindScheme,
): Pick<Protocol, 'resolve' | 'resend' | 'resettle' | 'isForAnother' | 'lookAtBlocks'> {
  return {
    resolve: async (record) =>
      (await schemeOf(record.scheme, record.network)?.resolve(record)) ?? NOT_CONFIGURED,
    resend: async (record) => schemeOf(record.scheme, record.network)?.resend?.(record),
    resettle: async (record, journal) => {
      const scheme = schemeOf(record.scheme, record.network)
      if (scheme === undefined) return NOT_CONFIGURED
      return (await scheme.resettle?.(record, journal)) ?? SETTLEMENT_FAILED
    },
    isForAnother: (record) => schemeOf(record.scheme, record.network)?.isForAnother?.(record) ?? false,
    lookAtBlocks: async ({ scheme, network }, blocks) =>
      (await schemeOf(scheme, network)?.lookAtBlocks(network, blocks)) ?? CANNOT_LOOK,
  }
}

/**
 * What the schemes offer, in order of preference: schemes of one name stand together, and their offers as the catalog
 * lists the networks.
 */
export function inOrder(schemes: readonly Scheme[], networks: readonly string[]): readonly NetworkOffer[] {
  const names = [...new Set(schemes.map(({ name }) => name))]
  const rank = ({ network }: NetworkOffer): number => {
    const place = networks.indexOf(network)
    return place === -1 ? networks.length : place
  }
  return names.flatMap((name) =>
    schemes
      .filter((scheme) => scheme.name === name)
      .flatMap((scheme) => scheme.offers)
      .toSorted((a, b) => rank(a) - rank(b)),
  )
}

const RESPONSE = 'PAYMENT-RESPONSE'
const META_PAYMENT = 'x402/payment'
const META_RESPONSE = 'x402/payment-response'

const NOT_OFFERED = 'payments of this scheme on this network are not offered here'

/** Why a scheme does not sell what has a price of this kind. */
const UNFIT: Readonly<Record<PriceKind, string>> = {
  fixed: 'payments of this scheme buy only what is metered: pay the amount of another offer',
  metered:
    'what this call costs is known after the work, and this scheme charges exactly what was signed: pay by a scheme of "accepts", which charges at most that',
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

function readHeader(header: string | string[], take: (payment: unknown) => Detection): Detection {
  return typeof header === 'string'
    ? readBase64(header, take)
    : { kind: 'malformed', code: 'invalid_payload', detail: 'the header occurs twice' }
}

const TWO_VERSIONS: Detection = {
  kind: 'malformed',
  code: 'multiple_payments',
  detail: 'the request carries payments of x402 versions 1 and 2',
}

/** Reported clearly: clients of version 1 would otherwise get one 402 after the other. */
const NO_V1: Detection = {
  kind: 'malformed',
  code: 'invalid_x402_version',
  detail: `X-PAYMENT is the header of x402 version 1, which is not accepted here. ${VERSION_2}`,
}

/** x402 v2 core §5.3. `extra.usage`: what a metered amount consists of. */
function settlementResponse({ transaction, network, payer, amount, extra }: Receipt): JsonObject {
  return { success: true, transaction, network, payer, amount, ...(extra && { extra }) }
}

/** The receipt with what was counted for a metered price. */
function withUsage({ usage }: PaymentRecord, receipt: Receipt): Receipt {
  return usage === undefined ? receipt : { ...receipt, extra: { ...receipt.extra, usage } }
}

/** What one version of x402 says of a settlement, and in which header. */
interface SettlementForm {
  readonly header: string
  /** Undefined: nothing is said of it. */
  readonly settled: (record: PaymentRecord, receipt: Receipt, status: number) => JsonObject | undefined
  readonly failed: (record: PaymentRecord, code: ErrorCode) => JsonObject
}

/** What is sent with an answer about its settlement; with a good one, also the signed receipts, as extensions. */
function settlementAnswers(
  { header, settled, failed }: SettlementForm,
  receipts: ReceiptSigner | undefined,
): Pick<PaymentProtocol, 'receiptHeaders' | 'failureHeaders' | 'tools'> {
  const signed = (record: PaymentRecord, receipt: Receipt, status: number): JsonObject | undefined => {
    const response = settled(record, receipt, status)
    if (response === undefined || !isSuccessStatus(status)) return response
    const proofs = receipts?.sign(record, receipt)
    return proofs === undefined ? response : { ...response, extensions: receiptExtensions(proofs) }
  }
  return {
    receiptHeaders: (...sold) => {
      const response = signed(...sold)
      return response === undefined ? {} : { [header]: encode(response) }
    },
    failureHeaders: (record, code) => ({ [header]: encode(failed(record, code)) }),
    tools: {
      receipt: (...sold) => {
        const response = signed(...sold)
        return response === undefined ? {} : { [META_RESPONSE]: response }
      },
      failure: (record, code) => ({ [META_RESPONSE]: failed(record, code) }),
    },
  }
}

function failureResponse({ network, payer }: PaymentRecord, errorReason: ErrorCode): JsonObject {
  return { success: false, errorReason, transaction: '', network, payer }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
}

/** Adds to a payment of a scheme what is the same for all. */
function paymentOf(
  protocol: PaymentProtocol,
  scheme: Scheme,
  payload: PaymentPayload,
  made: SchemePayment,
  listingOf: (endpoint: Endpoint) => Listing | undefined,
): Payment {
  const longestWork = scheme.offers.find(({ network }) => network === made.network)?.longestWork
  return {
    ...made,
    protocol: longestWork === undefined ? protocol : { ...protocol, longestWork },
    scheme: scheme.name,
    // Another call of the same voucher comes with another token.
    token: made.keyFor === undefined ? tokenOf(payload) : undefined,
    identifier: payload.extensions?.[IDENTIFIER]?.info?.id,
    copies: 'wait',
    check: (offer, now): Refusal | undefined => {
      const { endpoint, resource } = offer
      const offered = scheme.offers.find(({ network }) => network === made.network)
      // An older payment may have used a network that is no longer offered.
      if (offered === undefined) return { code: 'no_matching_requirements', detail: NOT_OFFERED }
      if (!offered.prices.includes(priceKindOf(endpoint)))
        return { code: 'no_matching_requirements', detail: UNFIT[priceKindOf(endpoint)] }
      const listing = listingOf(endpoint)
      const listed = listing && { ...listing, url: resource }
      const refusal = made.check(
        { ...offer, settle: settleOrderOf(offered, endpoint.operation), listed },
        now,
      )
      if (refusal?.code === 'no_matching_requirements' || namesResource(payload.resource?.url, resource))
        return refusal
      return { code: 'payment_wrong_resource', detail: 'the payment was made for another path' }
    },
  }
}

function actionOf(action: SchemeAction): Action {
  return {
    run: async () => {
      const done = await action.run()
      if (done.kind === 'refused') return done
      const { result } = done
      return {
        kind: 'done',
        result,
        headers: { [RESPONSE]: encode(result) },
        meta: { [META_RESPONSE]: result },
      }
    },
  }
}

/** Origin and path agree, or the payment names no resource. The query is not part of an offer. */
function namesResource(named: string | undefined, resource: string): boolean {
  if (named === undefined) return true
  if (!URL.canParse(named)) return false
  const { origin, pathname } = new URL(named)
  return (
    `${origin}${pathname}` === resource ||
    origin + pathname === new URL(resource).origin + new URL(resource).pathname
  )
}

/** The redelivery token of the challenge, which stock clients copy. */
function tokenOf({ extensions }: PaymentPayload): string | undefined {
  const extension = extensions?.['redelivery']
  const info = isJsonObject(extension) ? extension['info'] : undefined
  const token = isJsonObject(info) ? info['token'] : undefined
  return typeof token === 'string' && token.length <= 64 ? token : undefined
}

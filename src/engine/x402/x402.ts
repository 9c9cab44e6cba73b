import type { IncomingHttpHeaders } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { isAddress, sameAddress, toChecksum, type Address } from '../base/address.ts'
import type { Endpoint, Service } from '../catalog/catalog.ts'
import { CANNOT_LOOK, type BlockLook } from '../chains/evm/finality.ts'
import type { ErrorCode, Refusal } from '../base/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { BlockReference, PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import type { Network } from '../base/networks.ts'
import {
  createTokens,
  exampleAmount,
  fixedPrice,
  otherArguments,
  SETTLEMENT_FAILED,
  type Challenge,
  type Detection,
  type Journal,
  type Payment,
  type Protocol,
  type Settlement,
} from '../payment/protocol.ts'
import { createChallenge, MCP_EXTENSION } from './x402-challenge.ts'
import {
  decodePayload,
  IDENTIFIER,
  readPayload,
  VERSION_2,
  type Authorization,
  type Decoded,
  type Listing,
  type PaymentPayload,
} from './payload.ts'
import { evmPayerKey } from '../chains/evm/payer-key.ts'
import { recoverSigner, splitSignature } from '../chains/evm/signature.ts'
import { authorizationDigest } from './exact-evm/eip712.ts'
import { requirementsOf, type AcceptedNetwork, type Requirements } from './requirements.ts'
import { type Settler } from './exact-evm/settler.ts'
import { settlementRequestOf } from './exact-evm/settlement-request.ts'
import type { ExpectedTransfer } from './exact-evm/token.ts'

/** An accepted network with the means to settle, which are brought up at the first payment. */
export interface SettleableNetwork extends AcceptedNetwork {
  readonly settler: () => Promise<Settler>
  /** Which of these blocks are final. */
  readonly lookAtBlocks: (blocks: readonly BlockReference[]) => Promise<BlockLook>
}

interface X402Settings {
  readonly service: Service
  readonly baseUrl: string
  /** In order of preference: clients pay the first one they can. */
  readonly offered: readonly AcceptedNetwork[]
  /** Every network with settlement, offered or not: an accepted payment is finished on its network. */
  readonly reachable: readonly SettleableNetwork[]
  readonly random: (bytes: number) => Uint8Array
}

/** x402 version 2, scheme exact on EVM by EIP-3009. */
export function createX402({ service, baseUrl, offered, reachable, random }: X402Settings): Protocol {
  const settings = { service, baseUrl, networks: offered, nextToken: createTokens(random) }
  const listings = new WeakMap<Endpoint, Listing>()
  const challenge = (endpoint: Endpoint, amount = fixedPrice(endpoint)): Challenge | undefined => {
    if (amount === undefined || offered.length === 0) return undefined
    const made = createChallenge(endpoint, amount, settings)
    listings.set(endpoint, made.listing)
    return made
  }
  /** A payment may come before its endpoint was asked for without one. */
  const listingOf = (endpoint: Endpoint): Listing | undefined => {
    if (!listings.has(endpoint)) challenge(endpoint, exampleAmount(endpoint.operation))
    return listings.get(endpoint)
  }
  const context: OfferContext = { offered, listingOf }
  const networkOf = (id: string): SettleableNetwork | undefined =>
    reachable.find(({ network }) => network.id === id)
  const take = (decoded: Decoded): Detection => {
    if (decoded.kind === 'malformed') return decoded
    const network = networkOf(decoded.payload.accepted.network)
    return network === undefined
      ? { kind: 'refused', code: 'no_matching_requirements', detail: NOT_OFFERED }
      : { kind: 'payment', payment: exactPayment(protocol, decoded.payload, network, context) }
  }
  const protocol: Protocol = {
    name: 'x402',
    // An authorization contains its own validity.
    longestWork: Infinity,
    payerKey: evmPayerKey,
    detect: (headers) => detect(headers, take),
    tools: {
      capabilities: { extensions: { [MCP_EXTENSION]: {} } },
      detect: ({ 'x402/payment': sent }) => {
        if (sent === undefined) return { kind: 'none' }
        // Some clients send the text of the header.
        return take(typeof sent === 'string' ? decodePayload(sent.trim()) : readPayload(sent))
      },
      receipt: (_, receipt) => ({ 'x402/payment-response': settlementResponse(receipt) }),
      failure: (entry, code) => ({ 'x402/payment-response': failureResponse(entry, code) }),
    },
    challenge,
    resolve: (entry) => resolve(networkOf(entry.network), entry),
    resettle: (entry, journal) => resettle(networkOf(entry.network), entry, journal),
    lookAtBlocks: async (network, blocks) => (await networkOf(network)?.lookAtBlocks(blocks)) ?? CANNOT_LOOK,
    receiptHeaders: (_, receipt) => ({ 'PAYMENT-RESPONSE': encode(settlementResponse(receipt)) }),
    failureHeaders: (entry, code) => ({ 'PAYMENT-RESPONSE': encode(failureResponse(entry, code)) }),
  }
  return protocol
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'
const NOT_OFFERED = 'payments on this network are not offered here'

/** x402 v1 sends X-PAYMENT: reported clearly, since its clients would otherwise get one 402 after the other. */
function detect(headers: IncomingHttpHeaders, take: (decoded: Decoded) => Detection): Detection {
  const header = headers['payment-signature']
  if (typeof header === 'string') return take(decodePayload(header.trim()))
  if (header !== undefined)
    return { kind: 'malformed', code: 'invalid_payload', detail: 'the header occurs twice' }
  if (headers['x-payment'] === undefined) return { kind: 'none' }
  return {
    kind: 'malformed',
    code: 'invalid_x402_version',
    detail: `X-PAYMENT is the header of x402 version 1, which is not supported. ${VERSION_2}`,
  }
}

/** x402 v2 core §5.3. */
function settlementResponse({ transaction, network, payer, amount }: Receipt): JsonObject {
  return { success: true, transaction, network, payer, amount }
}

function failureResponse({ network, payer }: PaymentRecord, errorReason: ErrorCode): JsonObject {
  return { success: false, errorReason, transaction: '', network, payer }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
}

async function resolve(network: SettleableNetwork | undefined, entry: PaymentRecord): Promise<Settlement> {
  const expected = expectedOf(network, entry)
  if (network === undefined || expected === undefined) return NOT_CONFIGURED
  const settler = await network.settler()
  return settler.resolve(expected, entry.dispatch, entry.validBefore, entry.createdAt)
}

async function resettle(
  network: SettleableNetwork | undefined,
  entry: PaymentRecord,
  journal: Journal,
): Promise<Settlement> {
  const expected = expectedOf(network, entry)
  if (network === undefined || expected === undefined) return NOT_CONFIGURED
  const settler = await network.settler()
  return (await settler.resettle?.(expected, entry.dispatch, journal)) ?? SETTLEMENT_FAILED
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

/** What the chain shows once the payment of a record is carried out. */
function expectedOf(
  network: SettleableNetwork | undefined,
  { key, payee, amount }: PaymentRecord,
): ExpectedTransfer | undefined {
  const signed = readPaymentKey(key)
  if (network === undefined || signed === undefined || !isAddress(payee)) return undefined
  return { token: network.network.token.address, ...signed, to: payee, value: BigInt(amount) }
}

/** Seconds of validity a payment must still have, as every x402 implementation asks. */
const MARGIN_SECONDS = 6
/** Seconds a payment may be valid beyond its offer, for fast clocks; its record is kept as long. */
const SLACK_SECONDS = 600

/** What new payments are checked against. */
interface OfferContext {
  /** The networks; an older payment may have used another one. */
  readonly offered: readonly AcceptedNetwork[]
  /** What facilitators may list of a route or a tool. */
  readonly listingOf: (endpoint: Endpoint) => Listing | undefined
}

/** One signed authorization of scheme exact, EIP-3009, on one network. */
function exactPayment(
  protocol: Protocol,
  payload: PaymentPayload,
  accepted: SettleableNetwork,
  { offered, listingOf }: OfferContext,
): Payment {
  const { network } = accepted
  const { signature, authorization } = payload.payload
  const digest = authorizationDigest(network, authorization)
  let request = settlementRequestOf(accepted, payload)
  /** Has reserved something for it. */
  let settler: Settler | undefined
  const checkSignature = async (): Promise<Refusal | undefined> => {
    const split = splitSignature(signature)
    const signer = split === undefined ? undefined : recoverSigner(digest, split)
    if (signer !== undefined && sameAddress(signer, authorization.from)) return undefined
    // A contract signs as it likes, and only the chain can ask it. A forgery costs us this call, and no more than a
    // genuine signature of an account without money does.
    request = { ...request, signedBy: 'contract' }
    return (await accepted.settler()).verifyContract(request, digest)
  }
  return {
    protocol,
    scheme: 'exact',
    key: paymentKey(network, authorization),
    network: network.id,
    asset: network.token.address,
    payee: authorization.to,
    authorizationHash: Buffer.from(digest).toString('base64url'),
    authorizedAmount: BigInt(authorization.value),
    // The token moves what was signed, neither more nor less.
    amountFor: () => BigInt(authorization.value),
    token: tokenOf(payload),
    identifier: payload.extensions?.[IDENTIFIER]?.info?.id,
    copies: 'wait',
    check: ({ endpoint, resource, price, timeoutSeconds = accepted.timeoutSeconds }, now) => {
      if (!offered.some((each) => each.network.id === network.id))
        return refuse('no_matching_requirements', NOT_OFFERED)
      const offer = requirementsOf({ ...accepted, timeoutSeconds }, price, endpoint.operation.settle)
      if (!matches(payload.accepted, offer))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, payload.accepted.amount, offer.amount) ?? NO_OFFER_OF_OURS,
        )
      if (!namesResource(payload.resource?.url, resource))
        return refuse('payment_wrong_resource', 'the payment was made for another path')
      const listing = listingOf(endpoint)
      if (listing !== undefined) {
        const { signedBy } = request
        request = { ...settlementRequestOf(accepted, payload, { ...listing, url: resource }), signedBy }
      }
      return checkAuthorization(authorization, offer, Math.floor(now / 1000))
    },
    verify: async () => {
      const refusal = await checkSignature()
      if (refusal !== undefined) return { kind: 'refused', refusal }
      const validBefore = BigInt(authorization.validBefore)
      const seconds = Number(validBefore < FAR ? validBefore : FAR)
      const { signedBy: account } = request
      return { kind: 'verified', payer: authorization.from, account, validBefore: seconds * 1000 }
    },
    simulate: async () => {
      settler = await accepted.settler()
      return settler.simulate(request)
    },
    release: () => settler?.release(request),
    settle: async (_amount, journal) => (await accepted.settler()).settle(request, journal),
  }
}

function checkAuthorization(
  { to, value, validAfter, validBefore }: Authorization,
  { payTo, amount, maxTimeoutSeconds }: Requirements,
  seconds: number,
): Refusal | undefined {
  if (!sameAddress(to, payTo)) {
    return refuse('invalid_exact_evm_recipient_mismatch', 'authorization.to is not the offer’s payTo')
  }
  if (value !== amount) {
    const code = 'invalid_exact_evm_payload_authorization_value_mismatch'
    return refuse(code, `authorization.value is ${value}; the offer asks for ${amount}`)
  }
  const late = 'invalid_exact_evm_payload_authorization_valid_before'
  if (BigInt(validBefore) < BigInt(seconds + MARGIN_SECONDS)) {
    return refuse(late, `authorization.validBefore leaves less than ${MARGIN_SECONDS} seconds`)
  }
  if (BigInt(validBefore) > BigInt(seconds + maxTimeoutSeconds + SLACK_SECONDS)) {
    const most = `${maxTimeoutSeconds} seconds, with ${SLACK_SECONDS} more for clocks that differ`
    return refuse(late, `authorization.validBefore is further away than ${most}`)
  }
  if (BigInt(validAfter) > BigInt(seconds)) {
    const early = 'invalid_exact_evm_payload_authorization_valid_after'
    return refuse(early, 'authorization.validAfter is in the future')
  }
  return undefined
}

/** The year 4000 in seconds: later is "never" to every clock we keep. */
const FAR = 64_060_588_800n

/** The signed fields that make an authorization unique on chain: (token, from, nonce). */
export function paymentKey(network: Network, { from, nonce }: Pick<Authorization, 'from' | 'nonce'>): string {
  return ['x402', 'exact', network.id, network.token.address, from, nonce.toLowerCase()].join(':')
}

/** Parses a ledger key, for payments without their header. */
export function readPaymentKey(
  key: string,
): { readonly from: Address; readonly nonce: `0x${string}` } | undefined {
  const match = /^x402:exact:.*:(0x[0-9a-fA-F]{40}):(0x[0-9a-f]{64})$/.exec(key)
  if (match === null) return undefined
  const [, from = '', nonce = ''] = match
  return { from: toChecksum(from), nonce: `0x${nonce.slice(2)}` }
}

/** Every core field equal; `extra` may have more than was offered. Addresses are compared as the numbers they are. */
function matches(accepted: Requirements, offered: Requirements): boolean {
  return (
    accepted.scheme === offered.scheme &&
    accepted.network === offered.network &&
    accepted.amount === offered.amount &&
    accepted.maxTimeoutSeconds === offered.maxTimeoutSeconds &&
    sameAddress(accepted.asset, offered.asset) &&
    sameAddress(accepted.payTo, offered.payTo) &&
    covers(accepted.extra ?? {}, offered.extra ?? {})
  )
}

function covers(given: Readonly<Record<string, Json>>, asked: Readonly<Record<string, Json>>): boolean {
  return Object.entries(asked).every(([key, value]) => isDeepStrictEqual(given[key], value))
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

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}

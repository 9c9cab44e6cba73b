import type { IncomingHttpHeaders } from 'node:http'
import { isAddress } from '../../address.ts'
import type { Face, Service } from '../../catalog/catalog.ts'
import type { JsonObject } from '../../json.ts'
import type { Entry } from '../../ledger/entry.ts'
import type { Detection, Protocol, Settlement } from '../protocol.ts'
import { createTokens } from '../tokens.ts'
import { createChallenge, type ChallengeSettings, type ListedChallenge, type Listing } from './challenge.ts'
import { bindTools } from './tool-binding.ts'
import { failureResponse, settlementResponse } from './settlement-response.ts'
import { ExactPayment, readPaymentKey, type Counter, type OpenTill } from './exact.ts'
import { decodePayload, VERSION_2, type Decoded } from './payload.ts'

export interface X402Settings {
  readonly service: Service
  readonly baseUrl: string
  /** In order of preference: clients pay the first they can. */
  readonly tills: readonly OpenTill[]
  /** Every network that can be reached, offered or not: a payment that was taken is finished wherever it was made. */
  readonly reachable: readonly OpenTill[]
  readonly random: (bytes: number) => Uint8Array
}

/** x402 version 2, scheme exact on EVM by EIP-3009. */
export function createX402(settings: X402Settings): Protocol {
  const { tills, reachable } = settings
  const offer = { ...settings, nextToken: createTokens(settings.random) }
  const listings = new WeakMap<Face, Listing>()
  const counter: Counter = { tills, listingOf: (face) => listings.get(face) }
  const take = (decoded: Decoded): Detection => takePayment(protocol, reachable, counter, decoded)
  const protocol: Protocol = {
    name: 'x402',
    // A payment says itself how long it is valid.
    longestWork: Infinity,
    detect: (headers) => detect(headers, take),
    tools: bindTools(take),
    challenge: (face) => {
      const challenge = challengeOf(face, offer)
      if (challenge !== undefined) listings.set(face, challenge.listing)
      return challenge
    },
    resolve: (entry) => resolve(reachable, entry),
    receiptHeaders: (_, receipt) => ({ 'PAYMENT-RESPONSE': encode(settlementResponse(receipt)) }),
    failureHeaders: (entry, code) => ({ 'PAYMENT-RESPONSE': encode(failureResponse(entry, code)) }),
  }
  return protocol
}

function detect(headers: IncomingHttpHeaders, take: (decoded: Decoded) => Detection): Detection {
  const header = headers['payment-signature']
  if (header === undefined) return detectOld(headers)
  if (typeof header !== 'string')
    return { kind: 'malformed', code: 'invalid_payload', detail: 'the header stands twice' }
  return take(decodePayload(header.trim()))
}

function takePayment(
  protocol: Protocol,
  reachable: readonly OpenTill[],
  counter: Counter,
  decoded: Decoded,
): Detection {
  if (decoded.kind === 'malformed') return decoded
  const { network } = decoded.payload.accepted
  const till = reachable.find((each) => each.network.id === network)
  if (till === undefined)
    return {
      kind: 'refused',
      code: 'no_matching_requirements',
      detail: 'payments on this network are not offered here',
    }
  return { kind: 'payment', payment: new ExactPayment(protocol, decoded.payload, till, counter) }
}

/** x402 v1 sends X-PAYMENT: said clearly, for its clients would otherwise meet one 402 after the other. */
function detectOld(headers: IncomingHttpHeaders): Detection {
  if (headers['x-payment'] === undefined) return { kind: 'none' }
  return {
    kind: 'malformed',
    code: 'invalid_x402_version',
    detail: `X-PAYMENT is the header of x402 version 1, which is not supported. ${VERSION_2}`,
  }
}

function challengeOf(face: Face, settings: ChallengeSettings): ListedChallenge | undefined {
  const { price } = face.operation
  return price === undefined || settings.tills.length === 0
    ? undefined
    : createChallenge(face, price, settings)
}

async function resolve(reachable: readonly OpenTill[], entry: Entry): Promise<Settlement> {
  const till = reachable.find(({ network }) => network.id === entry.network)
  const signed = readPaymentKey(entry.key)
  if (till === undefined || signed === undefined || !isAddress(entry.payee)) {
    return { kind: 'unknown', detail: 'the network of this payment is not configured here any more' }
  }
  const settler = await till.settler()
  const movement = {
    token: till.network.token.address,
    ...signed,
    to: entry.payee,
    value: BigInt(entry.amount),
  }
  return settler.resolve(movement, entry.dispatch, entry.validBefore, entry.createdAt)
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
}

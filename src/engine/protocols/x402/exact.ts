import { isDeepStrictEqual } from 'node:util'
import { sameAddress, toChecksum, type Address } from '../../address.ts'
import type { Json } from '../../json.ts'
import type { Journal, Offer, Payment, Protocol, Refusal, Settlement, Verification } from '../protocol.ts'
import type { Face } from '../../catalog/catalog.ts'
import { requirementsOf, type Listing, type Till } from './challenge.ts'
import { IDENTIFIER } from './identifier.ts'
import { orderOf, type Order } from './order.ts'
import type { Authorization, PaymentPayload, Requirements } from './payload.ts'
import { authorizationDigest, recoverSigner, splitSignature } from './signature.ts'
import type { Settler } from './settler.ts'

/** Seconds of validity a payment must still have, as every x402 implementation asks. */
const MARGIN_SECONDS = 6
/** Seconds a payment may outlast its offer, for buyers whose clocks are fast: what is kept for it has to end. */
const SLACK_SECONDS = 600

/** A till with the means to settle, which are brought up at the first payment. */
export interface OpenTill extends Till {
  readonly settler: () => Promise<Settler>
}

/** What new payments are taken for. */
export interface Counter {
  /** The networks; an older payment may have used another one. */
  readonly tills: readonly Till[]
  /** What facilitators may list of a route or a tool. */
  listingOf(face: Face): Listing | undefined
}

/** One signed authorization of scheme exact, EIP-3009, bound to the till it pays into. */
export class ExactPayment implements Payment {
  readonly protocol: Protocol
  readonly key: string
  readonly network: string
  readonly asset: string
  readonly payee: string
  readonly seal: string
  readonly amount: bigint
  readonly token: string | undefined
  readonly identifier: string | undefined
  readonly copies = 'wait'
  readonly #payload: PaymentPayload
  readonly #till: OpenTill
  readonly #counter: Counter
  readonly #digest: Uint8Array
  #order: Order
  /** Has reserved something for it. */
  #settler: Settler | undefined

  constructor(protocol: Protocol, payload: PaymentPayload, till: OpenTill, counter: Counter) {
    const { authorization } = payload.payload
    this.protocol = protocol
    this.#payload = payload
    this.#till = till
    this.#counter = counter
    this.#order = orderOf(till, payload)
    this.#digest = authorizationDigest(till.network, authorization)
    this.seal = Buffer.from(this.#digest).toString('base64url')
    this.network = till.network.id
    this.asset = till.network.token.address
    this.payee = authorization.to
    this.amount = BigInt(authorization.value)
    this.key = paymentKey(till, authorization)
    this.token = tokenOf(payload)
    this.identifier = payload.extensions?.[IDENTIFIER]?.info?.id
  }

  get #authorization(): Authorization {
    return this.#payload.payload.authorization
  }

  check(
    { face, resource, price, timeoutSeconds = this.#till.timeoutSeconds }: Offer,
    now: number,
  ): Refusal | undefined {
    if (!this.#counter.tills.some(({ network }) => network.id === this.network)) {
      return refuse('no_matching_requirements', 'payments on this network are not offered here')
    }
    const offered = requirementsOf({ ...this.#till, timeoutSeconds }, price, face.operation.settle)
    if (!matches(this.#payload.accepted, offered)) {
      return refuse('no_matching_requirements', '"accepted" is not one of the offers made here')
    }
    if (!namesResource(this.#payload.resource?.url, resource)) {
      return refuse('payment_wrong_resource', 'the payment was made for another path')
    }
    const listing = this.#counter.listingOf(face)
    if (listing !== undefined) {
      const { signedBy } = this.#order
      this.#order = { ...orderOf(this.#till, this.#payload, { ...listing, url: resource }), signedBy }
    }
    return this.#checkAuthorization(offered, Math.floor(now / 1000))
  }

  #checkAuthorization(offered: Requirements, seconds: number): Refusal | undefined {
    const { to, value, validAfter, validBefore } = this.#authorization
    if (!sameAddress(to, offered.payTo)) {
      return refuse('invalid_exact_evm_recipient_mismatch', 'authorization.to is not the offer’s payTo')
    }
    if (value !== offered.amount) {
      const code = 'invalid_exact_evm_payload_authorization_value_mismatch'
      return refuse(code, `authorization.value is ${value}; the offer asks for ${offered.amount}`)
    }
    if (BigInt(validBefore) < BigInt(seconds + MARGIN_SECONDS)) {
      const code = 'invalid_exact_evm_payload_authorization_valid_before'
      return refuse(code, `authorization.validBefore leaves less than ${MARGIN_SECONDS} seconds`)
    }
    if (BigInt(validBefore) > BigInt(seconds + offered.maxTimeoutSeconds + SLACK_SECONDS)) {
      const code = 'invalid_exact_evm_payload_authorization_valid_before'
      const most = `${offered.maxTimeoutSeconds} seconds, with ${SLACK_SECONDS} more for clocks that differ`
      return refuse(code, `authorization.validBefore is further away than ${most}`)
    }
    if (BigInt(validAfter) > BigInt(seconds)) {
      return refuse(
        'invalid_exact_evm_payload_authorization_valid_after',
        'authorization.validAfter lies in the future',
      )
    }
    return undefined
  }

  async verify(): Promise<Verification> {
    const refusal = await this.#checkSignature()
    if (refusal !== undefined) return { kind: 'refused', refusal }
    const { from, validBefore } = this.#authorization
    const seconds = BigInt(validBefore) < FAR ? BigInt(validBefore) : FAR
    const { signedBy: account } = this.#order
    return { kind: 'verified', payer: from, account, validBefore: Number(seconds) * 1000 }
  }

  async #checkSignature(): Promise<Refusal | undefined> {
    const { signature, authorization } = this.#payload.payload
    const split = splitSignature(signature)
    const signer = split === undefined ? undefined : recoverSigner(this.#digest, split)
    if (signer !== undefined && sameAddress(signer, authorization.from)) return undefined
    // A contract signs as it likes, and only the chain can ask it. A forgery costs us this call, and no more than a
    // genuine signature of an account without money does.
    this.#order = { ...this.#order, signedBy: 'contract' }
    const settler = await this.#till.settler()
    return settler.askWallet(this.#order, this.#digest)
  }

  async simulate(): Promise<Refusal | undefined> {
    this.#settler = await this.#till.settler()
    return this.#settler.simulate(this.#order)
  }

  release(): void {
    this.#settler?.release(this.#order)
  }

  async settle(journal: Journal): Promise<Settlement> {
    const settler = await this.#till.settler()
    return settler.settle(this.#order, journal)
  }
}

/** The year 4000 in seconds: later is "never" to every clock we keep. */
const FAR = 64_060_588_800n

/** The signed fields that make an authorization unique on chain: (token, from, nonce). */
export function paymentKey(
  { network }: Pick<Till, 'network'>,
  { from, nonce }: Pick<Authorization, 'from' | 'nonce'>,
): string {
  return ['x402', network.id, network.token.address, from, nonce].join(':').toLowerCase()
}

/** Reads a ledger key back, for payments whose header is gone. */
export function readPaymentKey(
  key: string,
): { readonly from: Address; readonly nonce: `0x${string}` } | undefined {
  const match = /:(0x[0-9a-f]{40}):(0x[0-9a-f]{64})$/.exec(key)
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

function tokenOf({ extensions }: PaymentPayload): string | undefined {
  const extension = extensions?.['redelivery']
  if (typeof extension !== 'object' || extension === null || !('info' in extension)) return undefined
  const { info } = extension
  if (typeof info !== 'object' || info === null || !('token' in info)) return undefined
  return typeof info.token === 'string' && info.token.length <= 64 ? info.token : undefined
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}

import { VALIDITY_MARGIN_S, VALIDITY_SLACK_S } from '../../base/money-times.ts'
import { isAddress, sameAddress, type Address } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import { CANNOT_LOOK, type BlockLook } from '../../chains/evm/finality.ts'
import { evmPayerKey } from '../../chains/evm/payer-key.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import type { BlockReference, PaymentRecord } from '../../ledger/payment-record.ts'
import { otherArguments } from '../../payment/call-price.ts'
import { SETTLEMENT_FAILED, type Journal, type Settlement } from '../../payment/settlement.ts'
import type { PaymentPayload } from '../payload.ts'
import { matches, requirementsOf, type Requirements } from '../requirements.ts'
import type { Scheme, SchemePayment } from '../scheme.ts'
import { offerOf, type AcceptedNetwork } from './accepted-network.ts'
import type { Authorization } from '../../chains/evm/eip3009/authorization.ts'
import type { PermitAccounts } from '../facilitators/permit-accounts.ts'
import type { FacilitatorContext } from './facilitated-transfer.ts'
import { readExact, type ExactPayload } from './exact-payload.ts'
import { authorizationDigest } from '../../chains/evm/eip3009/digest.ts'
import { paymentKey, readPaymentKey } from './payment-key.ts'
import { settlementRequestOf } from './settlement-request.ts'
import type { SettlementContext } from './settlement-context.ts'
import type { SharedAccounts } from './shared-accounts.ts'
import type { Settler } from './settler.ts'
import { BY_AUTHORIZATION, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** An accepted network with its settler, which is opened at the first payment. */
export interface SettleableNetwork extends AcceptedNetwork {
  readonly settler: () => Promise<Settler>
  /** Undefined where facilitators alone settle. */
  readonly own: OwnSettlement | undefined
  /** Facilitators that settle by scheme upto; undefined where there is no facilitator. */
  readonly theirs: FacilitatedSettlement | undefined
  /** Which of these blocks are final. */
  readonly lookAtBlocks: (blocks: readonly BlockReference[]) => Promise<BlockLook>
}

/** Facilitators that settle on a network by scheme upto. */
export interface FacilitatedSettlement extends FacilitatorContext {
  readonly accounts: PermitAccounts
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** The accounts of this process that settle on a network. */
export interface OwnSettlement {
  /** In the operator’s order. */
  readonly accounts: readonly Address[]
  /** Those of all processes of the ledger. */
  readonly shared: SharedAccounts
  /** The clock of the ledger. */
  readonly now: () => number
  /** Opened at the first payment. */
  readonly context: () => Promise<SettlementContext>
}

interface ExactNetworks {
  /** In order of preference: clients pay the first one they can. */
  readonly offered: readonly AcceptedNetwork[]
  /** Every network with settlement, offered or not: an accepted payment is finished on its network. */
  readonly reachable: readonly SettleableNetwork[]
}

/** Scheme `exact` on EVM by EIP-3009. */
export function exactScheme({ offered, reachable }: ExactNetworks): Scheme {
  const networkOf = (id: string): SettleableNetwork | undefined =>
    reachable.find(({ network }) => network.id === id)
  return {
    name: 'exact',
    offers: offered.map(offerOf),
    knows: (network) => networkOf(network) !== undefined,
    payerKey: evmPayerKey,
    decode: (payload) => {
      const network = networkOf(payload.accepted.network)
      if (network === undefined) throw new Error(`${payload.accepted.network} is not settled here`)
      const exact = readExact(payload)
      return exact.kind === 'malformed'
        ? exact
        : { kind: 'payment', payment: exactPayment(exact.payload, network) }
    },
    resolve: async (record) => {
      const network = networkOf(record.network)
      const expected = expectedOf(network, record)
      if (network === undefined || expected === undefined) return NOT_CONFIGURED
      const settler = await network.settler()
      const { dispatch, failedIn, validBefore, createdAt } = record
      // When nothing was sent for it, an authorization that is unused now has failed, whatever its expiry.
      const wasSent = dispatch !== undefined || failedIn !== undefined
      return settler.resolve(expected, dispatch, wasSent ? validBefore : 0, createdAt)
    },
    resend: async (record) => (await networkOf(record.network)?.settler())?.resend?.(record.dispatch),
    resettle: (record, journal) => resettle(networkOf(record.network), record, journal),
    lookAtBlocks: async (network, blocks) => (await networkOf(network)?.lookAtBlocks(blocks)) ?? CANNOT_LOOK,
  }
}

async function resettle(
  network: SettleableNetwork | undefined,
  record: PaymentRecord,
  journal: Journal,
): Promise<Settlement> {
  const expected = expectedOf(network, record)
  if (network === undefined || expected === undefined) return NOT_CONFIGURED
  const settler = await network.settler()
  return (await settler.resettle?.(expected, record.dispatch, journal)) ?? SETTLEMENT_FAILED
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

/** What the chain shows once the payment of a record is carried out. */
function expectedOf(
  network: SettleableNetwork | undefined,
  { key, payee, amount }: PaymentRecord,
): ExpectedPayment | undefined {
  const signed = readPaymentKey(key)
  if (network === undefined || signed === undefined || !isAddress(payee)) return undefined
  return {
    token: network.network.token.address,
    ...signed,
    to: payee,
    value: BigInt(amount),
    proof: BY_AUTHORIZATION,
  }
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

/** One signed authorization of scheme exact, EIP-3009, on one network. */
function exactPayment(payload: PaymentPayload<ExactPayload>, accepted: SettleableNetwork): SchemePayment {
  const { network } = accepted
  const { signature, authorization } = payload.payload
  const digest = authorizationDigest(network, authorization)
  let request = settlementRequestOf(accepted, payload)
  /** The settler that has reserved something for this payment. */
  let settler: Settler | undefined
  const checkSignature = async (): Promise<Refusal | undefined> => {
    const split = splitSignature(signature)
    const signer = split === undefined ? undefined : recoverSigner(digest, split)
    if (signer !== undefined && sameAddress(signer, authorization.from)) return undefined
    // A contract decides which signatures it accepts, and only a call on the chain shows it. A forged signature costs
    // us this call, as a genuine signature of an account without money does.
    request = { ...request, signedBy: 'contract' }
    return (await accepted.settler()).verifyContract(request, digest)
  }
  return {
    key: paymentKey(network, authorization),
    network: network.id,
    asset: network.token.address,
    payee: authorization.to,
    authorizationHash: Buffer.from(digest).toString('base64url'),
    authorizedAmount: BigInt(authorization.value),
    // The token moves what was signed, neither more nor less.
    amountFor: () => BigInt(authorization.value),
    check: ({ endpoint, price, settle, listed, timeoutSeconds = accepted.timeoutSeconds }, now) => {
      const offer = requirementsOf(offerOf({ ...accepted, timeoutSeconds }), price, settle)
      if (!matches(payload.accepted, offer, sameAddress))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, payload.accepted.amount, offer.amount) ?? NO_OFFER_OF_OURS,
        )
      const { signedBy } = request
      request = { ...settlementRequestOf(accepted, payload, { settle, listed }), signedBy }
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
  if (BigInt(validBefore) < BigInt(seconds + VALIDITY_MARGIN_S)) {
    return refuse(late, `authorization.validBefore leaves less than ${VALIDITY_MARGIN_S} seconds`)
  }
  if (BigInt(validBefore) > BigInt(seconds + maxTimeoutSeconds + VALIDITY_SLACK_S)) {
    const most = `${maxTimeoutSeconds} seconds, with ${VALIDITY_SLACK_S} more for clocks that differ`
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

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}

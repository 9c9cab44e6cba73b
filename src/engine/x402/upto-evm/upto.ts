import { VALIDITY_MARGIN_S, VALIDITY_SLACK_S } from '../../base/money-times.ts'
import { sameAddress } from '../../base/address.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { CANNOT_LOOK } from '../../chains/evm/finality.ts'
import { evmPayerKey } from '../../chains/evm/payer-key.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { UPTO_PROXY } from '../../base/permit2.ts'
import { permitDigest } from '../../chains/evm/permit2/permit.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { otherArguments } from '../../payment/call-price.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../../payment/settlement.ts'
import type { PaymentPayload } from '../payload.ts'
import {
  atMost,
  matches,
  requirementsFor,
  requirementsOf,
  toAtomic,
  type NetworkOffer,
  type PriceKind,
} from '../requirements.ts'
import type { Scheme, SchemePayment } from '../scheme.ts'
import type { SettleableNetwork } from '../exact-evm/exact.ts'
import { checkApproval } from '../gas-sponsoring.ts'
import { facilitatedPermits } from './facilitated-permits.ts'
import { ownPermits } from './own-permits.ts'
import { validBefore } from './permit-order.ts'
import type { PermitRequest, PermitSettlement } from './permit-settlement.ts'
import { uptoKey } from './upto-key.ts'
import { uptoOffer } from './upto-offer.ts'
import { readUpto, type UptoPayload } from './upto-payload.ts'

/** A network on which permits are carried out. */
export type PermitNetwork = SettleableNetwork & { readonly permits: PermitSettlement }

interface UptoNetworks {
  /** In order of preference: clients pay the first one they can. */
  readonly offered: readonly PermitNetwork[]
  /** Every network with settlement, offered or not: an accepted payment is finished on its network. */
  readonly reachable: readonly PermitNetwork[]
  /** The prices that are paid with it. */
  readonly prices: readonly PriceKind[]
}

/** The networks on which permits are carried out: by our own accounts if there are any, else by facilitators. */
export function permitNetworks(networks: readonly SettleableNetwork[]): readonly PermitNetwork[] {
  return networks.flatMap((each) => {
    const { network, own, theirs } = each
    const others = theirs === undefined ? undefined : facilitatedPermits(network, theirs)
    if (own === undefined || own.accounts.length === 0)
      return others === undefined ? [] : [{ ...each, permits: others }]
    const ours = ownPermits(network, own)
    // What was sent to a facilitator is finished by that facilitator, which alone knows its state.
    const permits: PermitSettlement = {
      ...ours,
      resolve: (record) =>
        (record.dispatch?.kind === 'facilitator' ? (others ?? ours) : ours).resolve(record),
    }
    return [{ ...each, permits }]
  })
}

/** Scheme `upto` on EVM by Permit2. */
export function uptoScheme({ offered, reachable, prices }: UptoNetworks): Scheme {
  const networkOf = (id: string): PermitNetwork | undefined =>
    reachable.find(({ network }) => network.id === id)
  const permitsOf = ({ network }: PaymentRecord): PermitSettlement | undefined => networkOf(network)?.permits
  return {
    name: 'upto',
    offers: offered.flatMap((network) => {
      const { offered: account, approvals } = network.permits
      return account === undefined ? [] : [uptoOffer(network, account, prices, approvals)]
    }),
    knows: (network) => networkOf(network) !== undefined,
    payerKey: evmPayerKey,
    decode: (payload) => {
      const network = networkOf(payload.accepted.network)
      if (network === undefined) throw new Error(`${payload.accepted.network} is not settled here`)
      const upto = readUpto(payload)
      return upto.kind === 'malformed'
        ? upto
        : { kind: 'payment', payment: uptoPayment(payload, upto.payload, network, prices) }
    },
    resolve: async (record) => (await permitsOf(record)?.resolve(record)) ?? NOT_CONFIGURED,
    resend: async (record) => permitsOf(record)?.resend?.(record),
    resettle: async (record, journal) => {
      const permits = permitsOf(record)
      if (permits === undefined) return NOT_CONFIGURED
      return (await permits.resettle?.(record, journal)) ?? SETTLEMENT_FAILED
    },
    isForAnother: (record) => permitsOf(record)?.isForAnother?.(record) ?? false,
    background: async () => {
      await Promise.all(
        offered.map(async ({ permits, timeoutSeconds }) => permits.background?.(timeoutSeconds * 1_000)),
      )
    },
    leave: async () => {
      await Promise.all(offered.map(async ({ permits }) => permits.leave?.()))
    },
    lookAtBlocks: async (network, blocks) => (await networkOf(network)?.lookAtBlocks(blocks)) ?? CANNOT_LOOK,
  }
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

/** One signed permit of scheme upto on one network. */
function uptoPayment(
  payload: PaymentPayload,
  upto: UptoPayload,
  accepted: PermitNetwork,
  prices: readonly PriceKind[],
): SchemePayment {
  const { network, permits } = accepted
  const { permit, signature, approval } = upto
  const { address: token, decimals } = network.token
  const digest = permitDigest(network, permit)
  const offerFor = (timeoutSeconds: number): NetworkOffer =>
    uptoOffer({ ...accepted, timeoutSeconds }, permit.facilitator, prices, permits.approvals)
  let request: PermitRequest = {
    signed: { permit, signature, signedBy: 'key', approval },
    approval: upto.extension,
    requirements: requirementsFor(offerFor(accepted.timeoutSeconds), permit.amount, 'after'),
    listed: undefined,
  }
  let release: (() => void) | undefined
  const authorizedAmount = BigInt(permit.amount)
  const checkSignature = async (): Promise<Refusal | undefined> => {
    const split = splitSignature(signature)
    const signer = split === undefined ? undefined : recoverSigner(digest, split)
    if (signer !== undefined && sameAddress(signer, permit.from)) return undefined
    request = { ...request, signed: { ...request.signed, signedBy: 'contract' } }
    const refusal = await permits.verifyContract(request, digest)
    return refusal?.code === 'invalid_exact_evm_signature'
      ? refuse(
          'invalid_permit2_signature',
          refusal.detail.replace('authorization.from', 'permit2Authorization.from'),
        )
      : refusal
  }
  return {
    key: uptoKey(network, permit),
    network: network.id,
    asset: token,
    payee: permit.to,
    authorizationHash: Buffer.from(digest).toString('base64url'),
    authorizedAmount,
    amountFor: (price) => atMost(authorizedAmount, toAtomic(price, decimals)),
    // The nonces of approvals are used one after the other: two at the same time would void each other.
    ...(approval && { lockKey: `upto:${network.id}:${permit.from}` }),
    check: ({ endpoint, price, settle, listed, timeoutSeconds = accepted.timeoutSeconds }, now) => {
      const { extra, ...offer } = offerFor(timeoutSeconds)
      const { facilitatorAddress: _named, ...rest } = extra
      // The witness is signed, and an offer of another process or of a moment ago may have named another of our accounts.
      const offered = requirementsOf({ ...offer, extra: rest }, price, settle)
      if (!matches(payload.accepted, offered, sameAddress))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, payload.accepted.amount, offered.amount) ?? NO_OFFER_OF_OURS,
        )
      request = { ...request, requirements: { ...offered, extra }, listed }
      const { payTo, amount } = offered
      return (
        checkPermit(upto, { token, payTo, amount, mayName: permits.mayName }) ??
        checkTime(upto, timeoutSeconds, Math.floor(now / 1000))
      )
    },
    verify: async () => {
      const refusal = await checkSignature()
      if (refusal !== undefined) return { kind: 'refused', refusal }
      return {
        kind: 'verified',
        payer: permit.from,
        account: request.signed.signedBy,
        validBefore: validBefore(permit),
      }
    },
    simulate: async () => {
      const checked = await permits.simulate(request)
      if (checked.kind === 'refused') return checked.refusal
      ;({ release } = checked)
      return undefined
    },
    release: () => release?.(),
    settle: async (amount, journal) => permits.settle(request, amount, journal),
  }
}

interface PermitTerms {
  readonly token: string
  readonly payTo: string
  readonly amount: string
  readonly mayName: PermitSettlement['mayName']
}

/** Whether what was signed fits the offer. */
function checkPermit(
  { permit, spender, approval }: UptoPayload,
  { token, payTo, amount, mayName }: PermitTerms,
): Refusal | undefined {
  if (!sameAddress(spender, UPTO_PROXY))
    return refuse('invalid_permit2_spender', `permit2Authorization.spender is not ${UPTO_PROXY}`)
  if (!sameAddress(permit.to, payTo))
    return refuse('invalid_permit2_recipient_mismatch', 'witness.to is not the offer’s payTo')
  if (!mayName(permit.facilitator))
    return refuse('upto_facilitator_mismatch', 'witness.facilitator is not an account that settles here')
  if (!sameAddress(permit.token, token))
    return refuse('permit2_token_mismatch', 'permitted.token is not the offer’s asset')
  if (permit.amount !== amount)
    return refuse(
      'permit2_amount_mismatch',
      `permitted.amount is ${permit.amount}; the offer asks for ${amount}`,
    )
  return approval && checkApproval(approval, { payer: permit.from, token, amount: permit.amount })
}

/** Whether there is time for it. */
function checkTime(
  { permit: { deadline, validAfter }, approval }: UptoPayload,
  timeoutSeconds: number,
  seconds: number,
): Refusal | undefined {
  if (BigInt(deadline) < BigInt(seconds + VALIDITY_MARGIN_S))
    return refuse('permit2_deadline_expired', `the deadline leaves less than ${VALIDITY_MARGIN_S} seconds`)
  // It is used with the permit, at the end of the work.
  if (approval !== undefined && BigInt(approval.deadline) < BigInt(deadline))
    return refuse('permit2_deadline_expired', 'the approval in extensions ends before the permit')
  if (BigInt(deadline) > BigInt(seconds + timeoutSeconds + VALIDITY_SLACK_S)) {
    const most = `${timeoutSeconds} seconds, with ${VALIDITY_SLACK_S} more for clocks that differ`
    return refuse('permit2_deadline_expired', `the deadline is further away than ${most}`)
  }
  if (BigInt(validAfter) > BigInt(seconds))
    return refuse('permit2_not_yet_valid', 'witness.validAfter is in the future')
  return undefined
}

function refuse(code: ErrorCode, detail: string): Refusal {
  return { code, detail }
}

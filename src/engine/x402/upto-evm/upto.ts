import { VALIDITY_MARGIN_S, VALIDITY_SLACK_S } from '../../base/money-times.ts'
import { isAddress, sameAddress } from '../../base/address.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { CANNOT_LOOK } from '../../chains/evm/finality.ts'
import { evmPayerKey } from '../../chains/evm/payer-key.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { PERMIT2, UPTO_PROXY } from '../../base/permit2.ts'
import { permitDigest, type SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { findSettleCall } from '../../chains/evm/permit2/settle-call.ts'
import { BY_PERMIT, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { otherArguments } from '../../payment/call-price.ts'
import { SETTLEMENT_FAILED, type Journal, type Settlement } from '../../payment/settlement.ts'
import type { PaymentPayload } from '../payload.ts'
import { atMost, matches, requirementsOf, toAtomic, type PriceKind } from '../requirements.ts'
import type { Scheme, SchemePayment } from '../scheme.ts'
import { verifyErc1271 } from '../exact-evm/contract-wallet.ts'
import type { OwnSettlement, SettleableNetwork } from '../exact-evm/exact.ts'
import { findTransfer } from '../exact-evm/onchain-status.ts'
import { resendOwn, resume } from '../exact-evm/own-settler.ts'
import { validBefore } from './permit-order.ts'
import { preflightPermit, releasePermit, settlePermit } from './permit-settler.ts'
import { readUptoKey, uptoKey } from './upto-key.ts'
import { uptoOffer } from './upto-offer.ts'
import { readUpto, type UptoPayload } from './upto-payload.ts'

/** A network whose payments our own accounts settle. */
export type OwnNetwork = SettleableNetwork & { readonly own: OwnSettlement }

interface UptoNetworks {
  /** In order of preference: clients pay the first one they can. */
  readonly offered: readonly OwnNetwork[]
  /** Every network that our accounts settle on, offered or not: an accepted payment is finished on its network. */
  readonly reachable: readonly OwnNetwork[]
  /** The prices that are paid with it. */
  readonly prices: readonly PriceKind[]
}

/** The networks on which this process can settle itself. */
export function ownNetworks(networks: readonly SettleableNetwork[]): readonly OwnNetwork[] {
  return networks.flatMap((network) => {
    const { own } = network
    return own === undefined || own.accounts.length === 0 ? [] : [{ ...network, own }]
  })
}

/** Scheme `upto` on EVM by Permit2, settled by our own accounts. */
export function uptoScheme({ offered, reachable, prices }: UptoNetworks): Scheme {
  const networkOf = (id: string): OwnNetwork | undefined => reachable.find(({ network }) => network.id === id)
  return {
    name: 'upto',
    offers: offered.map((network) => uptoOffer(network, network.own.accounts[0] ?? '', prices)),
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
    resolve: (record) => resolve(networkOf(record.network), record),
    resend: async ({ network, dispatch }) => {
      const own = networkOf(network)?.own
      if (own !== undefined) await resendOwn(await own.context(), dispatch)
    },
    resettle: (record, journal) => resettle(networkOf(record.network), record, journal),
    lookAtBlocks: async (network, blocks) => (await networkOf(network)?.lookAtBlocks(blocks)) ?? CANNOT_LOOK,
  }
}

async function resolve(network: OwnNetwork | undefined, record: PaymentRecord): Promise<Settlement> {
  const expected = expectedOf(network, record)
  if (network === undefined || expected === undefined) return NOT_CONFIGURED
  const { dispatch, failedIn, createdAt } = record
  const context = await network.own.context()
  // When nothing was sent for it, a permit that is unused now has failed, whatever its deadline.
  const end = dispatch === undefined && failedIn === undefined ? 0 : record.validBefore
  return dispatch?.kind === 'own'
    ? resume(context, expected, dispatch, end, createdAt)
    : findTransfer(context, expected, end, createdAt)
}

/** Carries a permit out again whose transaction can never be mined any more. */
async function resettle(
  network: OwnNetwork | undefined,
  { dispatch, amount }: PaymentRecord,
  journal: Journal,
): Promise<Settlement> {
  if (network === undefined) return NOT_CONFIGURED
  const raw = dispatch?.kind === 'own' ? dispatch.raw : undefined
  const call = raw === undefined ? undefined : findSettleCall(raw)
  if (call === undefined) return SETTLEMENT_FAILED
  const signed = { ...call.signed, signedBy: signerKind(network, call.signed) }
  return settlePermit(await network.own.context(), signed, BigInt(amount), journal)
}

function signerKind({ network }: OwnNetwork, { permit, signature }: SignedPermit): SignedPermit['signedBy'] {
  const split = splitSignature(signature)
  const signer = split === undefined ? undefined : recoverSigner(permitDigest(network, permit), split)
  return signer !== undefined && sameAddress(signer, permit.from) ? 'key' : 'contract'
}

const NOT_CONFIGURED: Settlement = {
  kind: 'unknown',
  detail: 'the network of this payment is not configured here any more',
}

/** What the chain shows once the payment of a record is carried out. */
function expectedOf(
  network: OwnNetwork | undefined,
  { key, payee, amount }: PaymentRecord,
): ExpectedPayment | undefined {
  const signed = readUptoKey(key)
  if (network === undefined || signed === undefined || !isAddress(payee)) return undefined
  const { address: token } = network.network.token
  return { token, ...signed, to: payee, value: BigInt(amount), proof: BY_PERMIT }
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

/** One signed permit of scheme upto on one network. */
function uptoPayment(
  payload: PaymentPayload,
  upto: UptoPayload,
  accepted: OwnNetwork,
  prices: readonly PriceKind[],
): SchemePayment {
  const { network, own } = accepted
  const { permit, signature, approval } = upto
  const { address: token, decimals } = network.token
  const digest = permitDigest(network, permit)
  let signed: SignedPermit = { permit, signature, signedBy: 'key', approval }
  let release: (() => void) | undefined
  const authorizedAmount = BigInt(permit.amount)
  const checkSignature = async (): Promise<Refusal | undefined> => {
    const split = splitSignature(signature)
    const signer = split === undefined ? undefined : recoverSigner(digest, split)
    if (signer !== undefined && sameAddress(signer, permit.from)) return undefined
    signed = { ...signed, signedBy: 'contract' }
    const { chain } = await own.context()
    const refusal = await verifyErc1271(chain, permit.from, digest, signature)
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
    check: ({ endpoint, price, settle, timeoutSeconds = accepted.timeoutSeconds }, now) => {
      const { extra, ...offer } = uptoOffer({ ...accepted, timeoutSeconds }, permit.facilitator, prices)
      const { facilitatorAddress: _named, ...rest } = extra
      // The witness is signed, and an offer of another process or of a moment ago may have named another of our accounts.
      const offered = requirementsOf({ ...offer, extra: rest }, price, settle)
      if (!matches(payload.accepted, offered, sameAddress))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, payload.accepted.amount, offered.amount) ?? NO_OFFER_OF_OURS,
        )
      return (
        checkPermit(upto, { token, payTo: offered.payTo, amount: offered.amount, accounts: own.accounts }) ??
        checkTime(upto, timeoutSeconds, Math.floor(now / 1000))
      )
    },
    verify: async () => {
      const refusal = await checkSignature()
      if (refusal !== undefined) return { kind: 'refused', refusal }
      return {
        kind: 'verified',
        payer: permit.from,
        account: signed.signedBy,
        validBefore: validBefore(permit),
      }
    },
    simulate: async () => {
      const context = await own.context()
      const refusal = await preflightPermit(context, signed)
      if (refusal === undefined) release = () => releasePermit(context, signed)
      return refusal
    },
    release: () => release?.(),
    settle: async (amount, journal) => settlePermit(await own.context(), signed, amount, journal),
  }
}

interface PermitTerms {
  readonly token: string
  readonly payTo: string
  readonly amount: string
  readonly accounts: readonly string[]
}

/** Whether what was signed fits the offer. */
function checkPermit(
  { permit, spender, approval }: UptoPayload,
  { token, payTo, amount, accounts }: PermitTerms,
): Refusal | undefined {
  if (!sameAddress(spender, UPTO_PROXY))
    return refuse('invalid_permit2_spender', `permit2Authorization.spender is not ${UPTO_PROXY}`)
  if (!sameAddress(permit.to, payTo))
    return refuse('invalid_permit2_recipient_mismatch', 'witness.to is not the offer’s payTo')
  if (!accounts.some((account) => sameAddress(account, permit.facilitator)))
    return refuse('upto_facilitator_mismatch', 'witness.facilitator is not an account that settles here')
  if (!sameAddress(permit.token, token))
    return refuse('permit2_token_mismatch', 'permitted.token is not the offer’s asset')
  if (permit.amount !== amount)
    return refuse(
      'permit2_amount_mismatch',
      `permitted.amount is ${permit.amount}; the offer asks for ${amount}`,
    )
  if (approval === undefined) return undefined
  const fits =
    sameAddress(approval.from, permit.from) &&
    sameAddress(approval.asset, token) &&
    sameAddress(approval.spender, PERMIT2) &&
    approval.amount === permit.amount
  return fits
    ? undefined
    : refuse(
        'permit2_allowance_required',
        'the approval in extensions is not one of Permit2 by the payer, for the token and the amount of the permit',
      )
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

import { poll, type Clock, type Pace } from '../../chains/evm/chain.ts'
import type { ErrorCode, Refusal } from '../../errors.ts'
import type { SettlementAttempt } from '../../ledger/payment-record.ts'
import type { Journal, Settlement } from '../protocol.ts'
import { settled, simulate } from './payload.ts'
import { verifyErc1271, type ExpectedTransfer } from './token.ts'
import type { Facilitator, FacilitatorAnswer, SettleResponse } from './facilitator-client.ts'
import { findTransfer, type ChainReader } from './onchain-status.ts'
import type { ListingReports } from './listing-reports.ts'
import type { SettlementRequest, Settler } from './settlement.ts'

/** What it takes to have payments of one network settled by others. */
interface FacilitatorContext extends Clock {
  readonly networkId: string
  /** In order of preference. */
  readonly facilitators: readonly Facilitator[]
  /** A node that decides what has happened; without one, the facilitator is trusted. */
  readonly reader: ChainReader | undefined
  readonly listings: Pick<ListingReports, 'note'>
}

/** How long the outcome is awaited after the request has ended, before the buyer is asked to try again. */
const PACE = { first: 100, factor: 1.5, longest: 1_000, patience: 10_000 }
/** The same after a refusal of a payment that the token would still accept. */
const REFUSED_PACE = { first: 100, factor: 2, longest: 500, patience: 1_000 }
/** How long a node may take for a simulation. */
const SIMULATION_MS = 5_000
/** Who has used it longer ago than this is found when the payment is resolved, by the time it came. */
const RECENT_MS = 600_000
/** A facilitator that does not know by then will never know. */
const ASK_UNTIL_MS = 3_600_000

const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'nobody who settles payments on this network can be reached now; nothing was charged',
}
const PENDING: Settlement = { kind: 'unknown', detail: 'the payment was sent and is not confirmed yet' }

/**
 * Has payments verified and settled by facilitators: the one that has verified a payment settles it, and another one is asked
 * only while the first has seen nothing of the settlement.
 */
export function createFacilitatorSettler(context: FacilitatorContext): Settler {
  const { facilitators, reader } = context
  const verifiers = new WeakMap<SettlementRequest, Facilitator>()
  const verifyFirst = async (request: SettlementRequest): Promise<Refusal | undefined> => {
    const verified = await verify(facilitators, request)
    if (verified.kind === 'refused') return verified.refusal
    verifiers.set(request, verified.by)
    return undefined
  }
  return {
    simulate: verifyFirst,
    release: () => undefined,
    verifyContract: async (request, digest) => {
      const { authorization, signature } = request.payload.payload
      if (reader !== undefined) return verifyErc1271(reader.chain, authorization.from, digest, signature)
      const refusal = await verifyFirst(request)
      // A used payment, or one that cannot be executed now, does not prove who has signed it.
      return refusal === undefined || refusal.code === 'invalid_exact_evm_signature' ? refusal : UNREACHABLE
    },
    settle: async (request, journal) => {
      const by = verifiers.get(request)
      const verified =
        by === undefined ? await verify(facilitators, request) : { kind: 'verified' as const, by }
      return settle(context, verified, request, journal)
    },
    resolve: (expected, dispatch, validBefore, since) =>
      resolve(context, expected, dispatch, validBefore, since),
  }
}

type Verified =
  | { readonly kind: 'verified'; readonly by: Facilitator }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Asks one facilitator after the other until one knows the answer. */
async function verify(facilitators: readonly Facilitator[], request: SettlementRequest): Promise<Verified> {
  const body = bodyOf(request)
  for (const facilitator of facilitators) {
    const answer = await facilitator.verify(body)
    if (answer.kind !== 'answer') continue
    const { isValid, invalidReason } = answer.value
    if (isValid) return { kind: 'verified', by: facilitator }
    const code = verifyRefusal(invalidReason)
    if (code !== undefined)
      return { kind: 'refused', refusal: { code, detail: 'the facilitator would not settle this payment' } }
  }
  return { kind: 'refused', refusal: UNREACHABLE }
}

/** The body of /verify and /settle (x402 v2 core §7). */
function bodyOf({ payload, requirements }: SettlementRequest): string {
  return JSON.stringify({ x402Version: 2, paymentPayload: payload, paymentRequirements: requirements })
}

async function settle(
  context: FacilitatorContext,
  first: Verified,
  request: SettlementRequest,
  journal: Journal,
): Promise<Settlement> {
  const body = bodyOf(request)
  const since = context.now() - RECENT_MS
  let verified = first
  let others = context.facilitators
  while (verified.kind === 'verified') {
    const { by } = verified
    await journal.record({ kind: 'facilitator', url: by.url, request: body })
    const answer = await by.settle(body)
    noteListing(context, by, request, answer)
    if (answer.kind !== 'unreached') {
      const { reader } = context
      return reader === undefined
        ? believe(context, request.expected, by, body, answer)
        : confirm(context, reader, request, since, answer)
    }
    others = others.filter((facilitator) => facilitator !== by)
    verified = await verify(others, request)
  }
  const { refusal } = verified
  // No request was sent: nothing has moved, unless somebody else has settled the payment.
  if (refusal.code !== 'invalid_exact_evm_nonce_already_used') return { kind: 'failed', refusal }
  return context.reader === undefined
    ? PENDING
    : watch(context, context.reader, request.expected, since, PACE)
}

/** The settlement does not wait for it. */
function noteListing(
  { listings }: FacilitatorContext,
  { url }: Facilitator,
  { operation }: SettlementRequest,
  answer: FacilitatorAnswer<SettleResponse>,
): void {
  const listing = answer.kind === 'answer' ? answer.value.listing : undefined
  if (listing === undefined || operation === undefined) return
  void listings.note({ ...listing, facilitator: new URL(url).host, operation })
}

/**
 * The chain decides, whatever the facilitator has said. Its refusal counts when the token would not carry the payment out
 * either, or when the chain does not show the payment in the time of a block: what was sent anyway is seen by then.
 */
async function confirm(
  context: FacilitatorContext,
  reader: ChainReader,
  { expected, payload: { payload }, signedBy }: SettlementRequest,
  since: number,
  answer: FacilitatorAnswer<SettleResponse>,
): Promise<Settlement> {
  if (answer.kind === 'declined') return { kind: 'failed', refusal: UNREACHABLE }
  const refusal = refusalIn(answer)
  if (refusal === undefined) return watch(context, reader, expected, since, PACE)
  const { chain } = reader
  const { token } = expected
  const found = await simulate({ chain, token }, { ...payload, signedBy }, undefined, SIMULATION_MS)
  if (found !== undefined && UNUSED.has(found.code)) return { kind: 'failed', refusal }
  const isOpen = found === undefined
  const seen = await watch(context, reader, expected, since, isOpen ? REFUSED_PACE : PACE)
  return isOpen && seen.kind === 'unknown' ? { kind: 'failed', refusal } : seen
}

/** Why the token refuses an authorization after it has found it unused (FiatTokenV2_2 looks in this order). */
const UNUSED: ReadonlySet<ErrorCode> = new Set([
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_transaction_simulation_failed',
])

/** A no that leaves no doubt: true of the first answer only, for to a repeated request our own success looks like one. */
function refusalIn(answer: FacilitatorAnswer<SettleResponse>): Refusal | undefined {
  if (answer.kind !== 'answer' || answer.value.success) return undefined
  const code = settleRefusal(answer.value.errorReason)
  if (code === undefined) return undefined
  return code === 'chain_unavailable'
    ? UNREACHABLE
    : { code, detail: 'the facilitator did not settle this payment; nothing was charged' }
}

/** Waits until the chain shows the outcome. */
async function watch(
  context: FacilitatorContext,
  reader: ChainReader,
  expected: ExpectedTransfer,
  since: number,
  pace: Pace,
): Promise<Settlement> {
  const look = async (): Promise<Settlement | undefined> => {
    const seen = await findTransfer(reader, expected, Infinity, since)
    return seen.kind === 'unknown' ? undefined : seen
  }
  return (await poll(context, pace, look)) ?? PENDING
}

/** Without a node: trusts the facilitator, and repeats the request while it answers "pending". */
async function believe(
  context: FacilitatorContext,
  expected: ExpectedTransfer,
  facilitator: Facilitator,
  body: string,
  first: FacilitatorAnswer<SettleResponse>,
): Promise<Settlement> {
  if (first.kind === 'declined') return { kind: 'failed', refusal: UNREACHABLE }
  const refusal = refusalIn(first)
  if (refusal !== undefined) return { kind: 'failed', refusal }
  const end = context.now() + PACE.patience
  let answer: FacilitatorAnswer<SettleResponse> = first
  while (answer.kind === 'answer') {
    const { success, transaction, errorReason } = answer.value
    if (success && transaction !== undefined) return settled(context, expected, { hash: transaction })
    if (success || errorReason !== 'settlement_pending') return PENDING
    if (context.now() + PACE.longest > end) return PENDING
    await context.sleep(PACE.longest)
    answer = await facilitator.settle(body)
  }
  return PENDING
}

async function resolve(
  context: FacilitatorContext,
  expected: ExpectedTransfer,
  dispatch: SettlementAttempt | undefined,
  validBefore: number,
  since: number,
): Promise<Settlement> {
  const { reader } = context
  // When nothing was sent for it, an authorization that is unused now has failed, whatever its expiry.
  const end = dispatch === undefined ? 0 : validBefore
  const seen = reader === undefined ? undefined : await findTransfer(reader, expected, end, since)
  if (seen !== undefined && seen.kind !== 'unknown') return seen
  if (dispatch === undefined) return seen ?? NOT_SENT
  const again = await settleAgain(context, dispatch, validBefore)
  if (again?.success !== true || again.transaction === undefined) return PENDING
  return reader === undefined
    ? settled(context, expected, { hash: again.transaction })
    : watch(context, reader, expected, since, PACE)
}

const NOT_SENT: Settlement = {
  kind: 'failed',
  refusal: {
    code: 'settlement_failed',
    detail: 'nobody was asked to settle the payment; nothing was charged',
  },
}

/** Repeats the request to the same facilitator, which executes a payment once. */
async function settleAgain(
  { facilitators, now }: FacilitatorContext,
  dispatch: SettlementAttempt,
  validBefore: number,
): Promise<SettleResponse | undefined> {
  if (dispatch.kind !== 'facilitator' || dispatch.request === undefined) return undefined
  if (now() > validBefore + ASK_UNTIL_MS) return undefined
  const facilitator = facilitators.find(({ url }) => url === dispatch.url)
  const answer = await facilitator?.settle(dispatch.request)
  return answer?.kind === 'answer' ? answer.value : undefined
}

const BALANCE = 'invalid_exact_evm_insufficient_balance'
const SIGNATURE = 'invalid_exact_evm_signature'
const RECIPIENT = 'invalid_exact_evm_recipient_mismatch'
const VALUE = 'invalid_exact_evm_payload_authorization_value_mismatch'
const VALID_BEFORE = 'invalid_exact_evm_payload_authorization_valid_before'
const VALID_AFTER = 'invalid_exact_evm_payload_authorization_valid_after'
const REFUSED = 'invalid_exact_evm_transaction_simulation_failed'
const USED = 'invalid_exact_evm_nonce_already_used'

/**
 * Why a facilitator does not take a payment, in our codes: names of the specification (core §9), of the SDKs and of the
 * Coinbase service, which has enumerations of its own.
 */
const PAYERS_FAULT: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['insufficient_funds', BALANCE],
  ['invalid_exact_evm_insufficient_balance', BALANCE],
  ['invalid_exact_evm_signature', SIGNATURE],
  ['invalid_exact_evm_payload_signature', SIGNATURE],
  ['invalid_exact_evm_payload_signature_address', SIGNATURE],
  ['invalid_exact_evm_payload_authorization_typed_data_message', SIGNATURE],
  ['invalid_exact_evm_payload_undeployed_smart_wallet', SIGNATURE],
  ['invalid_exact_evm_failed_to_parse_signature', SIGNATURE],
  ['eip6492_factory_not_allowed', SIGNATURE],
  ['invalid_exact_evm_recipient_mismatch', RECIPIENT],
  ['invalid_exact_evm_payload_recipient_mismatch', RECIPIENT],
  ['invalid_exact_evm_authorization_value', VALUE],
  ['invalid_exact_evm_payload_authorization_value', VALUE],
  ['invalid_exact_evm_payload_authorization_value_too_low', VALUE],
  ['invalid_exact_evm_payload_authorization_value_mismatch', VALUE],
  ['invalid_exact_evm_payload_authorization_valid_before', VALID_BEFORE],
  ['invalid_exact_evm_payload_authorization_valid_after', VALID_AFTER],
  ['invalid_exact_evm_payload_authorization_from_address_kyt', REFUSED],
  ['invalid_exact_evm_payload_authorization_to_address_kyt', REFUSED],
  ['invalid_exact_evm_transaction_simulation_failed', REFUSED],
])

const NONCE: ReadonlySet<string> = new Set([USED, 'nonce_already_used', 'duplicate_settlement'])

/** The payment is as we have asked for it: this facilitator does not serve such ones, and another one may. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'invalid_network',
  'unsupported_network',
  'invalid_exact_evm_network_mismatch',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_exact_evm_scheme',
  'invalid_x402_version',
  'invalid_payment_requirements',
  'unsupported_payload_type',
  'asset_not_deployed_contract',
  'invalid_exact_evm_missing_eip712_domain',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'invalid_exact_evm_eip3009_not_supported',
])

/** The refusal as the buyer sees it; undefined when another facilitator may accept the payment. */
export function verifyRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return REFUSED
  if (NONCE.has(reason)) return USED
  if (NOT_SERVED.has(reason) || reason === 'unexpected_verify_error') return undefined
  return PAYERS_FAULT.get(reason) ?? REFUSED
}

/**
 * The same of a settlement. Undefined when money may have moved anyway: a used nonce may be used by this very
 * payment, a failed transaction may have come second, and what is not in a table is not known.
 */
export function settleRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return undefined
  return NOT_SERVED.has(reason) ? 'chain_unavailable' : PAYERS_FAULT.get(reason)
}

import { FACILITATOR_ASKED_MS } from '../../base/money-times.ts'
import { poll, type Clock, type Pace } from '../../base/poll.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import type { Dispatch } from '../../ledger/payment-record.ts'
import type { Journal, Settlement } from '../../payment/settlement.ts'
import { simulate } from './simulation.ts'
import { settled } from './onchain-status.ts'
import { balanceOf, isUsed } from '../../chains/evm/eip3009/token-state.ts'
import { verifyErc1271 } from './contract-wallet.ts'
import type { Facilitator, FacilitatorAnswer, SettleResponse } from '../facilitators/facilitator-client.ts'
import { findTransfer, type ChainReader } from './onchain-status.ts'
import {
  askToSettle,
  askToVerify,
  type Facilitators,
  NO_FACILITATOR,
  type SettleAnswer,
  type Verified,
} from '../facilitators/ask-facilitators.ts'
import type { Settler } from './settler.ts'
import type { SettlementRequest } from './settlement-request.ts'
import type { ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** What it takes to have payments of one network settled by others. */
interface FacilitatorContext extends Clock, Facilitators {
  readonly networkId: string
  /** A node that decides what has happened; without one, the facilitator is trusted. */
  readonly reader: ChainReader | undefined
}

/** How long a node may take for a simulation. */
const SIMULATION_MS = 5_000
/**
 * How far back a use of the authorization is searched now: an older use is found when the payment is resolved, since
 * that search begins at the arrival of the payment.
 */
const RECENT_MS = 600_000

const PENDING: Settlement = { kind: 'unknown', detail: 'the payment was sent and is not confirmed yet' }

/** Longer than a facilitator takes to have a transaction mined. */
const LONG: Pace = { first: 100, factor: 1.5, longest: 1_000, patience: 10_000 }
/** A block of the usual networks: most of these answers are true, and their buyers are waiting. */
const SHORT: Pace = { first: 100, factor: 2, longest: 500, patience: 2_500 }

/**
 * How long the chain is looked at after each answer to POST /settle, before the buyer is asked to try again.
 *
 * With a node, the chain decides: `settled` when it shows the transfer; `failed` when the authorization was canceled, used
 * for something else or has expired unused, or when the chain confirms a refusal (`isConfirmed`). Else the payment is
 * `unknown`, since its transaction may be in no block yet: recovery and the next copy of the payment ask again.
 *
 * Without a node, the facilitator is trusted: what it states as success or as a known reason of a refusal counts. Anything
 * else is `unknown`.
 */
const PACES: Readonly<Record<Verdict['kind'], Pace>> = {
  /** `success: false` with a reason of `settleRefusal`, under any status. */
  refused: SHORT,
  /** A redirect, 401, 403, 404, 405, 413 or 429 without a word on the payment. */
  declined: SHORT,
  /** Anything else: success, pending, other reasons and statuses, an answer that is cut off, unreadable or missing. */
  open: LONG,
}

/** What a facilitator says of a settlement. */
type Verdict =
  { readonly kind: 'declined' | 'open' } | { readonly kind: 'refused'; readonly refusal: Refusal }

/** A refusal is true of the first answer only: to a repeated request, our own success looks like one. */
function verdictIn(answer: SettleAnswer): Verdict {
  if (answer.kind === 'lost') return { kind: 'open' }
  if (answer.kind !== 'answer') return { kind: answer.kind }
  const code = answer.value.success ? undefined : settleRefusal(answer.value.errorReason)
  if (code === undefined) return { kind: 'open' }
  const detail = 'the facilitator did not settle this payment; nothing was charged'
  return { kind: 'refused', refusal: code === 'chain_unavailable' ? NO_FACILITATOR : { code, detail } }
}

/**
 * Has payments verified and settled by facilitators: the one that has verified a payment settles it, and another one is asked
 * only while the first has seen nothing of the settlement.
 */
export function createFacilitatorSettler(context: FacilitatorContext): Settler {
  const { facilitators, reader } = context
  const verifiers = new WeakMap<SettlementRequest, Facilitator>()
  const verifyFirst = async (request: SettlementRequest): Promise<Refusal | undefined> => {
    const verified = await askToVerify(facilitators, request, verifyRefusal)
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
      return refusal === undefined || refusal.code === 'invalid_exact_evm_signature'
        ? refusal
        : NO_FACILITATOR
    },
    settle: async (request, journal) => {
      const by = verifiers.get(request)
      const verified =
        by === undefined
          ? await askToVerify(facilitators, request, verifyRefusal)
          : { kind: 'verified' as const, by }
      return settle(context, verified, request, journal)
    },
    resolve: (expected, dispatch, end, since) => resolve(context, expected, dispatch, end, since),
  }
}

async function settle(
  context: FacilitatorContext,
  first: Verified,
  request: SettlementRequest,
  journal: Journal,
): Promise<Settlement> {
  const since = context.now() - RECENT_MS
  const asked = await askToSettle(context, { request, first, journal, refusalOf: verifyRefusal })
  if (asked.kind === 'unsent') return settleUnsent(context, request, since, asked.refusal)
  const { by, body, answer } = asked
  const verdict = verdictIn(answer)
  const { reader } = context
  return reader === undefined
    ? believe(context, request.expected, by, body, { answer, verdict })
    : confirm(context, reader, watchedOf(request, since), { request, verdict, pace: PACES[verdict.kind] })
}

/** No facilitator has received the request: nothing has moved, unless somebody else has settled the payment. */
async function settleUnsent(
  context: FacilitatorContext,
  request: SettlementRequest,
  since: number,
  refusal: Refusal,
): Promise<Settlement> {
  const { reader } = context
  const isNowUsed = refusal.code === 'invalid_exact_evm_nonce_already_used'
  if (reader === undefined) return isNowUsed ? PENDING : { kind: 'failed', refusal }
  if (isNowUsed) return watch(context, reader, watchedOf(request, since), LONG)
  const seen = await findTransfer(reader, request.expected, 0, since)
  return seen.kind === 'failed' ? { kind: 'failed', refusal } : seen
}

/** The chain decides, whatever the facilitator says. */
async function confirm(
  context: FacilitatorContext,
  reader: ChainReader,
  watched: Watched,
  {
    request,
    verdict,
    pace,
  }: { readonly request: SettlementRequest; readonly verdict: Verdict; readonly pace: Pace },
): Promise<Settlement> {
  if (verdict.kind === 'refused' && (await isConfirmed(reader, request)))
    return { kind: 'failed', refusal: verdict.refusal }
  return watch(context, reader, watched, pace)
}

/**
 * Whether a payment is unused and the token would refuse it, as the facilitator says: a transaction that is under way
 * then fails too. Use and balance are read at one block: several nodes may be behind one address.
 */
async function isConfirmed(
  { chain }: ChainReader,
  { expected, payload: { payload }, signedBy }: SettlementRequest,
): Promise<boolean> {
  const { token, from, value } = expected
  const head = await chain.block('latest')
  if (head.kind !== 'result') return false
  const { number } = head.result
  const [used, balance] = await Promise.all([
    isUsed(chain, expected, number),
    balanceOf({ chain, token }, from, number),
  ])
  if (used !== false || balance === undefined) return false
  if (balance < value) return true
  // The token looks at the signature after it has found the authorization unused.
  const found = await simulate({ chain, token }, { ...payload, signedBy }, undefined, SIMULATION_MS)
  return found?.code === SIGNATURE
}

/** A payment whose outcome the chain will show; times in milliseconds since the epoch. */
interface Watched {
  readonly expected: ExpectedPayment
  readonly validBefore: number
  /** Before this it was not used. */
  readonly since: number
}

function watchedOf({ expected, payload }: SettlementRequest, since: number): Watched {
  return { expected, since, validBefore: Number(payload.payload.authorization.validBefore) * 1_000 }
}

/** Waits until the chain shows the outcome. */
async function watch(
  context: FacilitatorContext,
  reader: ChainReader,
  { expected, validBefore, since }: Watched,
  pace: Pace,
): Promise<Settlement> {
  const look = async (): Promise<Settlement | undefined> => {
    const seen = await findTransfer(reader, expected, validBefore, since)
    return seen.kind === 'unknown' ? undefined : seen
  }
  return (await poll(context, pace, look)) ?? PENDING
}

/** Without a node: trusts the facilitator’s word, and repeats the request while it answers "pending". */
async function believe(
  context: FacilitatorContext,
  expected: ExpectedPayment,
  facilitator: Facilitator,
  body: string,
  {
    answer: first,
    verdict,
  }: { readonly answer: FacilitatorAnswer<SettleResponse>; readonly verdict: Verdict },
): Promise<Settlement> {
  if (verdict.kind === 'refused') return { kind: 'failed', refusal: verdict.refusal }
  const end = context.now() + LONG.patience
  let answer = first
  while (answer.kind === 'answer') {
    const { success, transaction, errorReason } = answer.value
    if (success && transaction !== undefined) return settled(context, expected, { hash: transaction })
    if (success || errorReason !== 'settlement_pending') return PENDING
    if (context.now() + LONG.longest > end) return PENDING
    await context.sleep(LONG.longest)
    answer = await facilitator.settle(body)
  }
  return PENDING
}

async function resolve(
  context: FacilitatorContext,
  expected: ExpectedPayment,
  dispatch: Dispatch | undefined,
  end: number,
  since: number,
): Promise<Settlement> {
  const { reader } = context
  const seen = reader === undefined ? undefined : await findTransfer(reader, expected, end, since)
  if (seen !== undefined && seen.kind !== 'unknown') return seen
  if (dispatch === undefined) return seen ?? NOT_SENT
  const again = await settleAgain(context, dispatch, end)
  if (again?.success !== true || again.transaction === undefined) return PENDING
  return reader === undefined
    ? settled(context, expected, { hash: again.transaction })
    : watch(context, reader, { expected, validBefore: end, since }, LONG)
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
  dispatch: Dispatch,
  validBefore: number,
): Promise<SettleResponse | undefined> {
  if (dispatch.kind !== 'facilitator' || dispatch.request === undefined) return undefined
  if (now() > validBefore + FACILITATOR_ASKED_MS) return undefined
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
 * The same of a settlement. Undefined when money may have moved anyway: a used nonce may be used by this very payment, one
 * that has expired may have been used before, a failed transaction may have come second, and what is not in a table is
 * not known. The other reasons are given before anything is sent, and a facilitator that looks again after it has settled
 * finds the nonce used.
 */
export function settleRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return undefined
  if (NOT_SERVED.has(reason)) return 'chain_unavailable'
  const code = PAYERS_FAULT.get(reason)
  return code === VALID_BEFORE ? undefined : code
}

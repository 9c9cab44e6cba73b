import { FACILITATOR_ASKED_MS } from '../../base/money-times.ts'
import { poll, type Clock, type Pace } from '../../base/poll.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import type { Dispatch } from '../../ledger/payment-record.ts'
import type { Journal, Settlement } from '../../payment/settlement.ts'
import type {
  Facilitator,
  FacilitatorAnswer,
  FacilitatorRequest,
  SettleResponse,
} from '../facilitators/facilitator-client.ts'
import {
  askToSettle,
  type Facilitators,
  NO_FACILITATOR,
  type SettleAnswer,
  type Verified,
} from '../facilitators/ask-facilitators.ts'
import type { ExpectedPayment } from '../../chains/evm/transfer-proof.ts'
import { findTransfer, settled, type ChainReader } from './onchain-status.ts'

/** What it takes to have payments of one network settled by others. */
export interface FacilitatorContext extends Clock, Facilitators {
  readonly networkId: string
  /** A node that decides what has happened; without one, the facilitator is trusted. */
  readonly reader: ChainReader | undefined
}

/** A transfer that a payer has signed and a facilitator carries out. */
export interface FacilitatedTransfer {
  /** `operation`: what a facilitator may list; undefined when none is named to it. */
  readonly request: FacilitatorRequest & { readonly operation: string | undefined }
  readonly expected: ExpectedPayment
  /** Milliseconds since the epoch; the transfer fails in blocks of this time and later. */
  readonly validBefore: number
  readonly reasons: Reasons
  /** Whether it is unused and the token would refuse it: a transaction that is under way then fails too. */
  readonly isRefusedOnChain: (reader: ChainReader) => Promise<boolean>
}

/** What the reasons of a facilitator mean for what its payer has signed. */
export interface Reasons {
  /** Of POST /verify, as the buyer sees it; undefined when another facilitator may accept the payment. */
  readonly ofVerify: (reason: string | undefined) => ErrorCode | undefined
  /** Of POST /settle; undefined when money may have moved anyway. */
  readonly ofSettle: (reason: string | undefined) => ErrorCode | undefined
  /** It was carried out, or canceled. */
  readonly used: ErrorCode
  /** What was moved, by a facilitator that says that it has settled. */
  readonly movedIn: (expected: ExpectedPayment, stated: SettleResponse) => bigint
}

/**
 * How far back a use of what was signed is searched now: an older use is found when the payment is resolved, since that
 * search begins at the arrival of the payment.
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
 * With a node, the chain decides: `settled` when it shows the transfer; `failed` when what was signed was canceled, used
 * for something else or has expired unused, or when the chain confirms a refusal (`isRefusedOnChain`). Else the payment is
 * `unknown`, since its transaction may be in no block yet: recovery and the next copy of the payment ask again.
 *
 * Without a node, the facilitator is trusted: what it states as success or as a known reason of a refusal counts. Anything
 * else is `unknown`.
 */
const PACES: Readonly<Record<Verdict['kind'], Pace>> = {
  /** `success: false` with a reason that `Reasons.ofSettle` knows, under any status. */
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
function verdictIn(answer: SettleAnswer, { ofSettle }: Reasons): Verdict {
  if (answer.kind === 'lost') return { kind: 'open' }
  if (answer.kind !== 'answer') return { kind: answer.kind }
  const code = answer.value.success ? undefined : ofSettle(answer.value.errorReason)
  if (code === undefined) return { kind: 'open' }
  const detail = 'the facilitator did not settle this payment; nothing was charged'
  return { kind: 'refused', refusal: code === 'chain_unavailable' ? NO_FACILITATOR : { code, detail } }
}

/** Has the facilitator settle that has verified the transfer. */
export async function settleByFacilitator(
  context: FacilitatorContext,
  first: Verified,
  transfer: FacilitatedTransfer,
  journal: Journal,
): Promise<Settlement> {
  const since = context.now() - RECENT_MS
  const { request, reasons } = transfer
  const asked = await askToSettle(context, { request, first, journal, refusalOf: reasons.ofVerify })
  if (asked.kind === 'unsent') return settleUnsent(context, transfer, since, asked.refusal)
  const { by, body, answer } = asked
  const verdict = verdictIn(answer, reasons)
  const { reader } = context
  return reader === undefined
    ? believe(context, transfer, by, body, { answer, verdict })
    : confirm(context, reader, transfer, { since, verdict })
}

/** No facilitator has received the request: nothing has moved, unless somebody else has settled the payment. */
async function settleUnsent(
  context: FacilitatorContext,
  transfer: FacilitatedTransfer,
  since: number,
  refusal: Refusal,
): Promise<Settlement> {
  const { reader } = context
  const isNowUsed = refusal.code === transfer.reasons.used
  if (reader === undefined) return isNowUsed ? PENDING : { kind: 'failed', refusal }
  if (isNowUsed) return watch(context, reader, { ...transfer, since }, LONG)
  const seen = await findTransfer(reader, transfer.expected, 0, since)
  return seen.kind === 'failed' ? { kind: 'failed', refusal } : seen
}

/** The chain decides, whatever the facilitator says. */
async function confirm(
  context: FacilitatorContext,
  reader: ChainReader,
  transfer: FacilitatedTransfer,
  { since, verdict }: { readonly since: number; readonly verdict: Verdict },
): Promise<Settlement> {
  if (verdict.kind === 'refused' && (await transfer.isRefusedOnChain(reader)))
    return { kind: 'failed', refusal: verdict.refusal }
  return watch(context, reader, { ...transfer, since }, PACES[verdict.kind])
}

/** A payment whose outcome the chain will show; times in milliseconds since the epoch. */
interface Watched extends Pick<FacilitatedTransfer, 'expected' | 'validBefore'> {
  /** Before this it was not used. */
  readonly since: number
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
  { expected, reasons }: FacilitatedTransfer,
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
    const { success, errorReason } = answer.value
    if (success) return asStated(context, expected, reasons, answer.value)
    if (errorReason !== 'settlement_pending') return PENDING
    if (context.now() + LONG.longest > end) return PENDING
    await context.sleep(LONG.longest)
    answer = await facilitator.settle(body)
  }
  return PENDING
}

/** A success, by the word of a facilitator. */
function asStated(
  context: FacilitatorContext,
  expected: ExpectedPayment,
  { movedIn }: Pick<Reasons, 'movedIn'>,
  stated: SettleResponse,
): Settlement {
  const { transaction: hash } = stated
  return hash === undefined
    ? PENDING
    : settled(context, { ...expected, value: movedIn(expected, stated) }, { hash })
}

/** What is known of a payment whose process has died; times in milliseconds since the epoch. */
interface Left {
  readonly dispatch: Dispatch | undefined
  /** From when on it has failed if it is unused. */
  readonly end: number
  /** When it arrived. */
  readonly since: number
}

/** Finds the outcome of a transfer that a facilitator was asked for. */
export async function resolveByFacilitator(
  context: FacilitatorContext,
  expected: ExpectedPayment,
  { dispatch, end, since }: Left,
  reasons: Pick<Reasons, 'movedIn'>,
): Promise<Settlement> {
  const { reader } = context
  const seen = reader === undefined ? undefined : await findTransfer(reader, expected, end, since)
  if (seen !== undefined && seen.kind !== 'unknown') return seen
  if (dispatch === undefined) return seen ?? NOT_SENT
  const again = await settleAgain(context, dispatch, end)
  if (again?.success !== true || again.transaction === undefined) return PENDING
  return reader === undefined
    ? asStated(context, expected, reasons, again)
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

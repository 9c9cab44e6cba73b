import type { Dispatch } from '../../ledger/entry.ts'
import type { Journal, Refusal, Settlement } from '../protocol.ts'
import { settleRefusal, verifyRefusal } from './facilitator-reasons.ts'
import type { Facilitator, FacilitatorAnswer, SettleResponse } from './facilitator.ts'
import type { Order } from './order.ts'
import type { Settler } from './settler.ts'
import type { Movement } from './token.ts'
import type { Witness } from './witness.ts'

/** What it takes to have payments of one network settled by others. */
export interface FacilitatedBench {
  readonly networkId: string
  /** In order of preference. */
  readonly facilitators: readonly Facilitator[]
  /** Decides what has happened; without one the word of the facilitator has to do. */
  readonly witness: Witness | undefined
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How long the outcome is looked for, after the request has ended, before the buyer is told to ask again. */
const PATIENCE_MS = 10_000
const FIRST_LOOK_MS = 100
const LONGEST_WAIT_MS = 1_000
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
 * Has payments verified and settled by facilitators: whoever has verified a payment settles it, and another one is asked
 * only while the first has seen nothing of the settlement.
 */
export function createFacilitatedSettler(bench: FacilitatedBench): Settler {
  const { facilitators, witness } = bench
  const verifiers = new WeakMap<Order, Facilitator>()
  const simulate = async (order: Order): Promise<Refusal | undefined> => {
    const verified = await verify(facilitators, order)
    if (verified.kind === 'refused') return verified.refusal
    verifiers.set(order, verified.by)
    return undefined
  }
  return {
    simulate,
    release: () => undefined,
    askWallet: async (order, digest) => {
      const { authorization, signature } = order.payload.payload
      if (witness !== undefined) return witness.askWallet(authorization.from, digest, signature)
      const refusal = await simulate(order)
      // A payment that is used up, or cannot be carried out now, shows nobody who has signed it.
      return refusal === undefined || refusal.code === 'invalid_exact_evm_signature' ? refusal : UNREACHABLE
    },
    settle: async (order, journal) => {
      const known = verifiers.get(order)
      const verified: Verified =
        known === undefined ? await verify(facilitators, order) : { kind: 'verified', by: known }
      return settle(bench, verified, order, journal)
    },
    resolve: (movement, dispatch, validBefore, since) =>
      resolve(bench, movement, dispatch, validBefore, since),
  }
}

type Verified =
  | { readonly kind: 'verified'; readonly by: Facilitator }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Asks one after the other until one knows. */
async function verify(facilitators: readonly Facilitator[], order: Order): Promise<Verified> {
  const request = requestOf(order)
  for (const facilitator of facilitators) {
    const answer = await facilitator.verify(request)
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
function requestOf({ payload, requirements }: Order): string {
  return JSON.stringify({ x402Version: 2, paymentPayload: payload, paymentRequirements: requirements })
}

async function settle(
  bench: FacilitatedBench,
  first: Verified,
  order: Order,
  journal: Journal,
): Promise<Settlement> {
  const request = requestOf(order)
  const since = bench.now() - RECENT_MS
  let verified = first
  let others = bench.facilitators
  while (verified.kind === 'verified') {
    const { by } = verified
    await journal.record({ kind: 'facilitator', url: by.url, request })
    const answer = await by.settle(request)
    if (answer.kind !== 'unreached') return conclude(bench, order.movement, since, by, request, answer)
    others = others.filter((facilitator) => facilitator !== by)
    verified = await verify(others, order)
  }
  const { refusal } = verified
  // Nobody of ours was asked to settle: nothing has moved, unless somebody else has carried the payment out.
  if (refusal.code !== 'invalid_exact_evm_nonce_already_used') return { kind: 'failed', refusal }
  return bench.witness === undefined ? PENDING : watch(bench, bench.witness, order.movement, since)
}

/** What the answer of a facilitator, or its silence, says of the money. */
function conclude(
  bench: FacilitatedBench,
  movement: Movement,
  since: number,
  by: Facilitator,
  request: string,
  answer: FacilitatorAnswer<SettleResponse>,
): Promise<Settlement> | Settlement {
  if (answer.kind === 'declined') return { kind: 'failed', refusal: UNREACHABLE }
  const refusal = refusalIn(answer)
  if (refusal !== undefined) return { kind: 'failed', refusal }
  return bench.witness === undefined
    ? hear(bench, movement, by, request, answer)
    : watch(bench, bench.witness, movement, since)
}

/** A no that leaves no doubt: true of the first answer only, for to a repeated request our own success looks like one. */
function refusalIn(answer: FacilitatorAnswer<SettleResponse>): Refusal | undefined {
  if (answer.kind !== 'answer' || answer.value.success) return undefined
  const code = settleRefusal(answer.value.errorReason)
  if (code === undefined) return undefined
  return code === 'chain_unavailable'
    ? UNREACHABLE
    : { code, detail: 'the facilitator did not settle this payment; nothing was charged' }
}

/** Waits until the chain shows it, whatever the facilitator has said. */
async function watch(
  { now, sleep }: FacilitatedBench,
  witness: Witness,
  movement: Movement,
  since: number,
): Promise<Settlement> {
  const patience = now() + PATIENCE_MS
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(wait * 1.5, LONGEST_WAIT_MS)) {
    const seen = await witness.find(movement, Infinity, since)
    if (seen.kind === 'settled') return seen
    if (now() + wait > patience) return PENDING
    await sleep(wait)
  }
}

/** Without a witness: its word, and while it says "pending", the same request again, which it knows by its nonce. */
async function hear(
  bench: FacilitatedBench,
  movement: Movement,
  facilitator: Facilitator,
  request: string,
  first: FacilitatorAnswer<SettleResponse>,
): Promise<Settlement> {
  const patience = bench.now() + PATIENCE_MS
  let answer = first
  while (answer.kind === 'answer') {
    const { success, transaction, errorReason } = answer.value
    if (success && transaction !== undefined) return settled(bench, movement, transaction)
    if (success || errorReason !== 'settlement_pending') return PENDING
    if (bench.now() + LONGEST_WAIT_MS > patience) return PENDING
    await bench.sleep(LONGEST_WAIT_MS)
    answer = await facilitator.settle(request)
  }
  return PENDING
}

function settled({ networkId }: FacilitatedBench, movement: Movement, transaction: string): Settlement {
  const { from, value } = movement
  const receipt = { transaction, network: networkId, payer: from, amount: value.toString() }
  return { kind: 'settled', receipt }
}

async function resolve(
  bench: FacilitatedBench,
  movement: Movement,
  dispatch: Dispatch | undefined,
  validBefore: number,
  since: number,
): Promise<Settlement> {
  const { witness } = bench
  // When nothing was sent for it, an authorization that is unused now has failed, whatever its end.
  const seen = await witness?.find(movement, dispatch === undefined ? 0 : validBefore, since)
  if (seen !== undefined && seen.kind !== 'unknown') return seen
  if (dispatch === undefined) return seen ?? NOT_SENT
  const again = await settleAgain(bench, dispatch, validBefore)
  if (again?.success !== true || again.transaction === undefined) return PENDING
  return witness === undefined
    ? settled(bench, movement, again.transaction)
    : watch(bench, witness, movement, since)
}

const NOT_SENT: Settlement = {
  kind: 'failed',
  refusal: {
    code: 'settlement_failed',
    detail: 'nobody was asked to settle the payment; nothing was charged',
  },
}

/** The same request to the same facilitator: it carries a payment out once. */
async function settleAgain(
  { facilitators, now }: FacilitatedBench,
  dispatch: Dispatch,
  validBefore: number,
): Promise<SettleResponse | undefined> {
  if (dispatch.kind !== 'facilitator' || dispatch.request === undefined) return undefined
  if (now() > validBefore + ASK_UNTIL_MS) return undefined
  const facilitator = facilitators.find(({ url }) => url === dispatch.url)
  const answer = await facilitator?.settle(dispatch.request)
  return answer?.kind === 'answer' ? answer.value : undefined
}

import { FACILITATOR_ASKED_MS } from '../../base/money-times.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import { poll, type Clock, type Pace } from '../../base/poll.ts'
import type { SvmChain } from '../../chains/svm/svm-chain.ts'
import type { FacilitatorRequest, PaymentRecord } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Journal, type Settlement } from '../../payment/settlement.ts'
import type { Facilitator, FacilitatorAnswer, SettleResponse } from '../facilitators/facilitator-client.ts'
import {
  type Asked,
  askToSettle,
  askToVerify,
  type Facilitators,
  NO_FACILITATOR,
  type Verified,
} from '../facilitators/ask-facilitators.ts'
import { digestInKey } from './svm-key.ts'
import { readSvm, type SvmPayload } from './svm-payload.ts'
import { findTransaction, lookAt, type SvmOutcome } from './svm-search.ts'
import { EXPIRED, NOT_SENT, svmSettled, type SvmRequest, type SvmSettler } from './svm-settler.ts'

/** What it takes to have payments of one Solana network settled by others. */
interface FacilitatorContext extends Clock, Facilitators {
  readonly networkId: string
  /** A node that decides what has happened; without one, the facilitator is trusted. */
  readonly chain: SvmChain | undefined
}

/** How long a node may take for a simulation. */
const SIMULATION_MS = 5_000
/** A block and its votes take a second. */
const PACE: Pace = { first: 200, factor: 1.5, longest: 1_000, patience: 10_000 }
const SHORT: Pace = { ...PACE, patience: 2_500 }

/** Has payments verified and settled by facilitators: the one that has verified a payment settles it. */
export function createSvmFacilitatorSettler(context: FacilitatorContext): SvmSettler {
  const verifiers = new WeakMap<SvmRequest, Facilitator>()
  return {
    simulate: async (request) => {
      const verified = await askToVerify(context.facilitators, request, svmRefusal)
      if (verified.kind === 'refused') return verified.refusal
      verifiers.set(request, verified.by)
      return undefined
    },
    release: () => undefined,
    settle: async (request, journal) => {
      const by = verifiers.get(request)
      const verified =
        by === undefined
          ? await askToVerify(context.facilitators, request, svmRefusal)
          : { kind: 'verified' as const, by }
      return settle(context, verified, request, journal)
    },
    resolve: (record) => resolve(context, record),
  }
}

async function settle(
  context: FacilitatorContext,
  first: Verified,
  request: SvmRequest,
  journal: Journal,
): Promise<Settlement> {
  const asked = await askToSettle(context, { request, first, journal, refusalOf: svmRefusal })
  if (asked.kind === 'asked') return conclude(context, request, asked)
  // A transaction that is used already may have been carried out for this very payment.
  const { refusal } = asked
  return refusal.code === 'invalid_exact_svm_already_processed' ? UNCONFIRMED : { kind: 'failed', refusal }
}

/**
 * With a node, the chain decides. Without one, the facilitator is trusted: what it states as success, or as a reason that
 * is given before anything is sent, counts; anything else is unknown.
 */
async function conclude(
  context: FacilitatorContext,
  request: SvmRequest,
  { by, body, answer }: Asked,
): Promise<Settlement> {
  const { chain, networkId: network } = context
  const { payer, amount } = request.transfer
  const terms = { network, payer, amount: amount.toString(), createdAt: context.now() }
  const refused = answer.kind === 'answer' ? refusalIn(answer.value) : undefined
  if (chain === undefined) {
    if (refused !== undefined) return { kind: 'failed', refusal: refused }
    const signature = await believe(context, by, body, answer)
    return signature === undefined ? UNCONFIRMED : svmSettled(terms, signature)
  }
  if (refused !== undefined && (await isConfirmed(chain, request)))
    return { kind: 'failed', refusal: refused }
  const pace = refused === undefined ? PACE : SHORT
  const named = answer.kind === 'answer' ? answer.value.transaction : undefined
  return (await watch(context, chain, { payment: request, terms, named }, pace)) ?? UNCONFIRMED
}

/** A refusal by a reason that is given before anything is sent. */
function refusalIn({ success, errorReason }: SettleResponse): Refusal | undefined {
  if (success || errorReason === undefined) return undefined
  const code = NOT_SERVED.has(errorReason) ? 'chain_unavailable' : BEFORE_SENDING.get(errorReason)
  if (code === undefined) return undefined
  if (code === 'chain_unavailable') return NO_FACILITATOR
  return { code, detail: 'the facilitator did not settle this payment; nothing was charged' }
}

/** Whether the network would refuse a payment that it has not carried out, as the facilitator says. */
async function isConfirmed(chain: SvmChain, { payload }: SvmRequest): Promise<boolean> {
  const { payload: signed } = payload
  const text = 'transaction' in signed && typeof signed.transaction === 'string' ? signed.transaction : ''
  const answer = await chain.simulate(text, SIMULATION_MS)
  if (answer.kind !== 'result' || answer.result.kind === 'passed') return false
  // One that is in a block is refused, too.
  return !/already ?(?:been )?processed/i.test(JSON.stringify(answer.result.error))
}

/** Without a node: repeats the request while the facilitator answers "pending". */
async function believe(
  context: FacilitatorContext,
  by: Facilitator,
  body: string,
  first: FacilitatorAnswer<SettleResponse>,
): Promise<string | undefined> {
  let answer = first
  return poll(context, { ...PACE, first: PACE.longest }, async () => {
    if (answer.kind !== 'answer') return undefined
    const { success, transaction, errorReason } = answer.value
    if (success) return transaction
    if (errorReason === 'settlement_pending') answer = await by.settle(body)
    return undefined
  })
}

/** A payment whose outcome the chain will show. */
interface Watched {
  readonly payment: SvmPayload
  readonly terms: Pick<PaymentRecord, 'network' | 'payer' | 'amount' | 'createdAt'>
  /** The signature that a facilitator has named. */
  readonly named: string | undefined
}

async function watch(
  context: FacilitatorContext,
  chain: SvmChain,
  watched: Watched,
  pace: Pace,
): Promise<Settlement | undefined> {
  return poll(context, pace, async () => {
    const seen = await look(chain, watched)
    if (seen.kind === 'succeeded') return svmSettled(watched.terms, seen.signature)
    return seen.kind === 'failed' ? SETTLEMENT_FAILED : undefined
  })
}

async function look(chain: SvmChain, { payment, terms, named }: Watched): Promise<SvmOutcome> {
  const { digest, transfer } = payment
  if (named !== undefined) {
    const status = await chain.status(named)
    const kind = status.kind === 'result' ? status.result.kind : 'none'
    if (kind === 'succeeded' || kind === 'failed') {
      const seen = await lookAt(chain, { signature: named, succeeded: kind === 'succeeded' }, digest)
      if (seen.kind === 'succeeded' || seen.kind === 'failed') return seen
    }
  }
  return findTransaction(chain, transfer.source, digest, terms)
}

async function resolve(context: FacilitatorContext, record: PaymentRecord): Promise<Settlement> {
  const { chain, now } = context
  const { dispatch } = record
  if (dispatch?.kind !== 'facilitator') return NOT_SENT
  const payment = paymentIn(dispatch, record)
  const again = await settleAgain(context, dispatch, record)
  if (chain === undefined || payment === undefined)
    return again === undefined ? UNCONFIRMED : svmSettled(record, again)
  // Read before the search: what is not found after its blockhash has expired is in no block.
  const isOver = now() >= record.validBefore && (await hasExpired(chain, payment))
  const seen = await look(chain, { payment, terms: record, named: again })
  switch (seen.kind) {
    case 'succeeded':
      return svmSettled(record, seen.signature)
    case 'failed':
      return SETTLEMENT_FAILED
    case 'none':
      return isOver ? EXPIRED : UNCONFIRMED
    case 'unclear':
      return UNCONFIRMED
  }
}

async function hasExpired(chain: SvmChain, { transaction }: SvmPayload): Promise<boolean> {
  const valid = await chain.isValid(transaction.blockhash, 'finalized')
  return valid.kind === 'result' && !valid.result
}

/** The payment in a request to a facilitator, if it is that of the record. */
function paymentIn({ request = '' }: FacilitatorRequest, { key }: PaymentRecord): SvmPayload | undefined {
  const body = parseJson(request)
  const sent = isJsonObject(body) ? body['paymentPayload'] : undefined
  const signed = isJsonObject(sent) ? sent['payload'] : undefined
  if (!isJsonObject(signed)) return undefined
  const read = readSvm({ payload: signed })
  return read.kind === 'payload' && read.payload.digest === digestInKey(key) ? read.payload : undefined
}

/** Repeats the request to the same facilitator, which executes a payment once; the signature, if it names one. */
async function settleAgain(
  { facilitators, now }: FacilitatorContext,
  { url, request }: FacilitatorRequest,
  { validBefore }: PaymentRecord,
): Promise<string | undefined> {
  if (request === undefined || now() > validBefore + FACILITATOR_ASKED_MS) return undefined
  const answer = await facilitators.find((each) => each.url === url)?.settle(request)
  return answer?.kind === 'answer' && answer.value.success ? answer.value.transaction : undefined
}

const LAYOUT = 'invalid_exact_svm_payload_transaction'
const FAILS = 'invalid_exact_svm_transaction_simulation_failed'

/** Why a facilitator does not take a payment, in our codes: names of the SDKs and of the Coinbase service. */
const BEFORE_SENDING: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['insufficient_funds', 'invalid_exact_svm_insufficient_balance'],
  ['invalid_exact_svm_payload_transaction', LAYOUT],
  ['invalid_exact_svm_payload_transaction_could_not_be_decoded', LAYOUT],
  ['invalid_exact_svm_payload_transaction_instructions_length', LAYOUT],
  ['invalid_exact_svm_payload_no_transfer_instruction', LAYOUT],
  ['invalid_exact_svm_payload_mint_mismatch', 'invalid_exact_svm_payload_mint_mismatch'],
  ['invalid_exact_svm_payload_recipient_mismatch', 'invalid_exact_svm_payload_recipient_mismatch'],
  ['invalid_exact_svm_payload_amount_mismatch', 'invalid_exact_svm_payload_amount_mismatch'],
  ['invalid_exact_svm_payload_signature_invalid', 'invalid_exact_svm_payload_signature_invalid'],
  ['invalid_exact_svm_transaction_simulation_failed', FAILS],
  ['transaction_simulation_failed', FAILS],
])

/** The payment is as we have asked for it: this facilitator does not serve such ones, and another one may. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'invalid_network',
  'unsupported_network',
  'unsupported_scheme',
  'invalid_exact_svm_unsupported_scheme',
  'invalid_exact_svm_network_mismatch',
  'network_mismatch',
  'invalid_x402_version',
  'invalid_payment_requirements',
  'unexpected_verify_error',
  'fee_payer_not_managed_by_facilitator',
  'invalid_exact_svm_fee_payer_not_managed_by_facilitator',
])

/** The refusal by POST /verify as the buyer sees it; undefined when another facilitator may accept the payment. */
export function svmRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return FAILS
  if (reason === 'duplicate_settlement') return 'invalid_exact_svm_already_processed'
  return NOT_SERVED.has(reason) ? undefined : (BEFORE_SENDING.get(reason) ?? FAILS)
}

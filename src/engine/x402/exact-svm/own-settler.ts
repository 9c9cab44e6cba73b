import type { Refusal } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import type { SvmNetwork } from '../../base/networks.ts'
import { poll, type Clock, type Pace } from '../../base/poll.ts'
import type { FeeLosses } from '../../chains/svm/fee-losses.ts'
import type { SpentFees } from '../../chains/svm/spent-fees.ts'
import type { SvmAccount } from '../../base/svm-signature.ts'
import type { SvmChain } from '../../chains/svm/svm-chain.ts'
import { encodeBase58 } from '../../base/base58.ts'
import { readOrder, writeOrder, type SvmOrder } from '../../chains/svm/svm-order.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Journal, type Settlement } from '../../payment/settlement.ts'
import { NODE_UNREACHABLE } from '../exact-evm/node-unreachable.ts'
import type { Exposure, PayerLimits } from '../exact-evm/payer-limits.ts'
import { readTransaction } from '../../chains/svm/transaction.ts'
import { tokenAccountOf } from '../../base/token-account.ts'
import { digestInKey } from './svm-key.ts'
import { findTransaction } from './svm-search.ts'
import { EXPIRED, NOT_SENT, svmSettled, type SvmRequest, type SvmSettler } from './svm-settler.ts'
import { encodeTransaction } from './svm-payload.ts'
import { readTransfer } from './transfer.ts'

/** What it takes to settle on one Solana network with accounts of this process. */
export interface SvmContext extends Clock {
  readonly network: SvmNetwork
  readonly chain: SvmChain
  /** By address. */
  readonly feePayers: ReadonlyMap<string, SvmAccount>
  /** By token account. */
  readonly payers: PayerLimits<string>
  readonly losses: FeeLosses
  readonly spent: SpentFees
}

/** How long a node may take for a simulation. */
const SIMULATION_MS = 5_000
/** A simulation of this age still shows what would happen. */
const FRESH_MS = 2_000
/** Nodes drop transactions when they are busy. */
const RESEND_MS = 2_000
/** A block follows after 400 ms, and its votes in a second. */
const PACE: Pace = { first: 150, factor: 1.3, longest: 800, patience: 20_000 }
/** For a payment that nobody waits for. */
const SHORT: Pace = { ...PACE, patience: 3_000 }

/** Settles with a fee payer of this process, over a node of the operator’s choice. */
export function createOwnSettler(context: SvmContext): SvmSettler {
  /** When the payments that are being worked on were simulated, by digest. */
  const simulated = new Map<string, number>()
  return {
    simulate: async (request) => {
      const refusal = await preflight(context, request)
      if (refusal === undefined) simulated.set(request.digest, context.now())
      return refusal
    },
    release: (request) => {
      simulated.delete(request.digest)
      context.payers.release(exposureOf(request))
    },
    settle: (request, journal) => settle(context, request, journal, simulated.get(request.digest)),
    resolve: (record) => resolve(context, record),
    resend: async ({ dispatch }) => {
      const order = dispatch?.kind === 'payer' ? readOrder(dispatch.raw) : undefined
      if (order !== undefined) await context.chain.send(order.transaction)
    },
  }
}

/** Before the work: whether this payment could be sent now and would succeed, besides others of its payer. */
async function preflight(context: SvmContext, request: SvmRequest): Promise<Refusal | undefined> {
  const { losses, payers } = context
  const suspended = await losses.refuse(request.transfer.payer)
  if (suspended !== undefined) return suspended
  const exposure = exposureOf(request)
  const short = await payers.reserve(exposure)
  if (short !== undefined) return short === NODE_UNREACHABLE ? short : { ...short, code: SHORT_CODE }
  const refusal = await simulate(context, request)
  if (refusal !== undefined) payers.release(exposure)
  return refusal
}

const SHORT_CODE = 'invalid_exact_svm_insufficient_balance'

/** What a payment puts at risk for its token account. */
function exposureOf({ transfer: { source, amount }, digest }: SvmRequest): Exposure<string> {
  return { payer: source, nonce: digest, value: amount, signedBy: 'key' }
}

async function simulate(
  { chain, network }: Pick<SvmContext, 'chain' | 'network'>,
  { transaction }: SvmRequest,
): Promise<Refusal | undefined> {
  const answer = await chain.simulate(encodeTransaction(transaction), SIMULATION_MS)
  if (answer.kind === 'unreachable') return NODE_UNREACHABLE
  if (answer.kind === 'refused') return refusalOf(answer.message, network)
  return answer.result.kind === 'passed' ? undefined : refusalOf(answer.result.error, network)
}

/** Why a simulation has failed, in our codes. */
export function refusalOf(error: Json, { title, coin }: SvmNetwork): Refusal {
  const text = typeof error === 'string' ? error : JSON.stringify(error)
  if (/blockhash ?not ?found/i.test(text))
    return {
      code: 'invalid_exact_svm_blockhash_expired',
      detail: `${title} has forgotten the blockhash of the transaction, or does not know it`,
    }
  if (/already ?(?:been )?processed/i.test(text))
    return { code: 'invalid_exact_svm_already_processed', detail: 'the transaction is in a block already' }
  if (
    /InsufficientFundsForFee|InsufficientFundsForRent|AccountNotFound|no record of a prior credit/i.test(text)
  )
    return {
      code: 'chain_unavailable',
      detail: `the account that pays the fees here has no ${coin}; nothing was charged`,
    }
  // Error 1 of the token program, of the transfer.
  if (/"InstructionError":\[2,\{"Custom":1\}\]/.test(text))
    return { code: SHORT_CODE, detail: 'the token account of the payer does not hold this amount' }
  return {
    code: 'invalid_exact_svm_transaction_simulation_failed',
    detail: 'the network would not carry out this transaction',
  }
}

async function settle(
  context: SvmContext,
  request: SvmRequest,
  journal: Journal,
  simulatedAt: number | undefined,
): Promise<Settlement> {
  const { payers, now } = context
  const exposure = exposureOf(request)
  const settlement = await payers.whileSettling(
    exposure,
    () => send(context, request, journal, simulatedAt),
    () => now() >= request.validBefore,
  )
  if (settlement === 'late') return NOT_SENT
  if (settlement.kind === 'settled') payers.note(exposure, 'settled')
  return settlement
}

/** Signs what was simulated, records it, sends it and waits for its block. */
async function send(
  context: SvmContext,
  request: SvmRequest,
  journal: Journal,
  simulatedAt = -Infinity,
): Promise<Settlement> {
  const { chain, feePayers, now } = context
  const { transaction, transfer } = request
  const feePayer = feePayers.get(transfer.feePayer)
  if (feePayer === undefined) return NOT_SENT
  // The buyer’s money may have moved while the handler ran. Nothing that a node refuses now has our signature.
  const refusal = now() - simulatedAt < FRESH_MS ? undefined : await simulate(context, request)
  if (refusal?.code === 'invalid_exact_svm_already_processed') return UNCONFIRMED
  if (refusal !== undefined) return { kind: 'failed', refusal }
  const last = await chain.lastValidHeight()
  if (last.kind !== 'result') return { kind: 'failed', refusal: NODE_UNREACHABLE }
  const signature = feePayer.sign(transaction.message)
  const order = { lastHeight: last.result, transaction: encodeTransaction(transaction, signature) }
  const hash = encodeBase58(signature)
  await journal.record({ kind: 'payer', hash, raw: writeOrder(order) })
  await chain.send(order.transaction)
  const terms = {
    network: context.network.id,
    payer: transfer.payer,
    amount: transfer.amount.toString(),
  }
  return (await follow(context, terms, hash, order, PACE, transfer.fee)) ?? UNCONFIRMED
}

type Terms = Pick<PaymentRecord, 'network' | 'payer' | 'amount'>

/**
 * Waits for the outcome of a transaction that was sent, and sends it again meanwhile: the same bytes, which the network
 * carries out once. `fee`: what it costs when it fails, in lamports; undefined when that is counted already.
 */
async function follow(
  context: SvmContext,
  terms: Terms,
  hash: string,
  order: SvmOrder | undefined,
  pace: Pace,
  fee?: bigint,
): Promise<Settlement | undefined> {
  const { chain, losses, spent, now } = context
  let sentAt = now()
  return poll(context, pace, async () => {
    const seen = await chain.status(hash)
    if (seen.kind !== 'result') return undefined
    switch (seen.result.kind) {
      case 'succeeded': {
        const paid = feeOf(order)
        if (paid !== undefined) spent.note(paid)
        return svmSettled(terms, hash, paid)
      }
      case 'failed':
        if (fee !== undefined) spent.note(fee)
        if (fee !== undefined) await losses.add({ payer: terms.payer, signature: hash, fee })
        return SETTLEMENT_FAILED
      case 'processed':
        return undefined
      case 'none':
        if (order === undefined || now() - sentAt < RESEND_MS) return undefined
        sentAt = now()
        await chain.send(order.transaction)
        return undefined
    }
  })
}

/** Lamports that a recorded transaction costs; undefined once its bytes are erased. */
function feeOf(order: SvmOrder | undefined): bigint | undefined {
  const read = readTransaction(Buffer.from(order?.transaction ?? '', 'base64'))
  const layout = read.kind === 'transaction' ? readTransfer(read.transaction) : undefined
  return layout?.kind === 'transfer' ? layout.transfer.fee : undefined
}

async function resolve(context: SvmContext, record: PaymentRecord): Promise<Settlement> {
  const { chain } = context
  const { dispatch } = record
  // Without our signature, nobody can have sent it.
  if (dispatch?.kind !== 'payer') return NOT_SENT
  const order = readOrder(dispatch.raw)
  // Read before the status: a transaction that is unknown after its last height is in no block.
  const height = order === undefined ? undefined : await chain.height('finalized')
  const seen = await chain.status(dispatch.hash)
  if (seen.kind !== 'result') return UNCONFIRMED
  const isOver = height?.kind === 'result' && order !== undefined && height.result > order.lastHeight
  if (seen.result.kind === 'none' && isOver) return endOf(context, record, order)
  if (seen.result.kind === 'none' && order !== undefined) await chain.send(order.transaction)
  return (await follow(context, record, dispatch.hash, order, SHORT)) ?? UNCONFIRMED
}

/**
 * The outcome of a payment that no new block can contain, and whose signature the node does not know: it may have forgotten
 * it, so the transactions of the payer’s account are looked through, too.
 */
async function endOf(
  { chain, network }: SvmContext,
  record: PaymentRecord,
  order: SvmOrder | undefined,
): Promise<Settlement> {
  const source = tokenAccountOf(record.payer, network.token.address)
  const digest = digestInKey(record.key)
  if (source === undefined || digest === undefined) return UNCONFIRMED
  const found = await findTransaction(chain, source, digest, record)
  switch (found.kind) {
    case 'succeeded':
      return svmSettled(record, found.signature, feeOf(order))
    case 'failed':
      return SETTLEMENT_FAILED
    case 'none':
      return EXPIRED
    case 'unclear':
      return UNCONFIRMED
  }
}

import { isAddress } from '../../base/address.ts'
import { LATE_SETTLEMENT_MS } from '../../base/money-times.ts'
import { findBatch } from '../../chains/evm/kept-batch.ts'
import { isHex, type Block, type Chain } from '../../chains/evm/chain.ts'
import { priceOfRevert } from '../../chains/evm/fees.ts'
import { poll } from '../../base/poll.ts'
import { isKnown } from '../../chains/evm/broadcast.ts'
import { TOO_LATE, type SendResult, type Tracked } from '../../chains/evm/transaction.ts'
import type { OwnTransaction, Dispatch } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Journal, type Settlement } from '../../payment/settlement.ts'
import { verifyErc1271 } from './contract-wallet.ts'
import { findSigned } from '../../chains/evm/eip3009/transfer-call.ts'
import { isOver, isDeepEnough } from '../../chains/evm/finality.ts'
import { explainFailure, leftOut, type LeftOut } from './failed-transaction.ts'
import { findTransfer, onchainStatus, settled } from './onchain-status.ts'
import type { Order } from './order.ts'
import { riskOf, type GasHold } from '../../chains/evm/gas-budget.ts'
import { type Exposure } from './payer-limits.ts'
import type { Settler } from './settler.ts'
import type { SettlementContext } from './settlement-context.ts'
import { preflight, orderOf, signedOf, exposureOf } from './preflight.ts'
import { nonceName, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** Polls of a broadcast transaction: nine in the two seconds of a usual block, since node calls cost money. */
const PACE = { first: 15, factor: 1.6, longest: 1_000, patience: 30_000 }
/**
 * How far back a use of the authorization is searched now: an older use is found when the payment is resolved, since
 * that search begins at the arrival of the payment.
 */
const RECENT_MS = 600_000

type Failed = Extract<Settlement, { readonly kind: 'failed' }>

/** Settles with signers of this process, over a node of the operator’s choice. */
export function createLocalSettler(context: SettlementContext): Settler {
  const { chain, payers } = context
  /** When the payments that are being worked on were simulated, by payment. */
  const simulated = new Map<string, number>()
  return {
    verifyContract: ({ payload: { payload } }, digest) =>
      verifyErc1271(chain, payload.authorization.from, digest, payload.signature),
    simulate: async (request) => {
      const at = context.now()
      const refusal = await preflight(context, orderOf(context, request.expected, signedOf(request)))
      if (refusal === undefined) simulated.set(nameOf(request.expected), at)
      return refusal
    },
    release: ({ expected }) => {
      simulated.delete(nameOf(expected))
      payers.release({ payer: expected.from, nonce: nonceName(expected) })
    },
    settle: (request, journal) => {
      const { expected } = request
      const order = orderOf(context, expected, signedOf(request))
      return settle(context, order, journal, simulated.get(nameOf(expected)))
    },
    resolve: (expected, dispatch, end, since) =>
      dispatch?.kind === 'own'
        ? resume(context, expected, dispatch, end, since)
        : findTransfer(context, expected, end, since),
    resend: (dispatch) => resendOwn(context, dispatch),
    resettle: async (expected, dispatch, journal) => {
      if (dispatch?.kind !== 'own') return SETTLEMENT_FAILED
      const raw = await bytesOf(context, dispatch)
      const signed = raw === undefined ? undefined : findSigned(raw, expected)
      return signed === undefined
        ? SETTLEMENT_FAILED
        : settle(context, orderOf(context, expected, signed), journal)
    },
  }
}

function nameOf({ from, nonce }: ExpectedPayment): string {
  return `${from}:${nonce}`
}

/**
 * Simulates once more right before it is sent, since the buyer’s funds may have moved while the handler ran and while
 * others were served, unless a payer who has paid before was simulated a moment ago, at `simulatedAt`; then waits for
 * the block. A payment that its transaction has left out is sent once more, by itself.
 */
export async function settle(
  context: SettlementContext,
  order: Order,
  journal: Journal,
  simulatedAt?: number,
): Promise<Settlement> {
  const { expected, validBefore, sender } = order
  const exposure = exposureOf(expected, order)
  const { last: fees } = context.fees
  if (fees !== undefined) {
    const wei = order.call.gas * priceOfRevert(fees)
    context.budget.prepare({ standing: context.payers.standing(exposure), wei }, context.limits.maxGasLoss)
  }
  const settlement = await context.payers.whileSettling(
    exposure,
    async () => {
      const request = {
        ...order.call,
        maxFeePerGas: context.limits.maxFeePerGas,
        expires: validBefore,
        ...(sender && { sender }),
        check: order.simulate,
        reserve: (wei: bigint) => reserveGas(context, exposure, wei),
        journal,
      }
      const standing = context.payers.standing(exposure)
      const shared =
        standing === 'code' || sender !== undefined
          ? request
          : {
              ...request,
              payer: { address: expected.from, standing },
              ...(standing === 'known' && { simulatedAt }),
            }
      const first = await follow(context, order, await context.signers.send(shared))
      if (first.kind !== 'left out') return first
      const alone = await follow(context, order, await context.signers.send(request))
      return alone.kind === 'left out' || alone.kind === 'failed' ? { ...first, ...failureOf(alone) } : alone
    },
    () => context.now() >= validBefore,
  )
  if (settlement === 'late') return { kind: 'failed', refusal: TOO_LATE.refusal }
  // A transaction whose outcome is unknown may be mined until its payment expires.
  context.budget.drop(riskOf(exposure), settlement.kind === 'unknown' ? validBefore : undefined)
  if (settlement.kind === 'settled') context.payers.note(exposure, 'settled')
  return settlement
}

/** Reserves what the transaction of a payment may lose, unless its payer has lost enough meanwhile. */
async function reserveGas(
  { limits: { maxGasLoss }, losses, payers, budget }: SettlementContext,
  exposure: Exposure,
  wei: bigint,
): Promise<GasHold> {
  const standing = payers.standing(exposure)
  if (standing !== 'known' && (await losses.refuse(exposure.payer, standing, maxGasLoss)) !== undefined)
    return 'lost'
  const payments = payers.paymentsUnderWay(exposure)
  return budget.hold({ id: riskOf(exposure), standing, payments, wei }, maxGasLoss)
}

async function follow(
  context: SettlementContext,
  { expected, validBefore, usedCode }: Order,
  sent: SendResult,
): Promise<Settlement | LeftOut> {
  const since = context.now() - RECENT_MS
  const seen = (): Promise<Settlement | undefined> => onchainStatus(context, expected, since, () => false)
  switch (sent.kind) {
    case 'refused':
      return sent.refusal.code === usedCode
        ? // The node that is asked now may not have seen the use that another one has reported.
          ((await poll(context, PACE, seen)) ?? UNCONFIRMED)
        : { kind: 'failed', refusal: sent.refusal }
    case 'unsent': {
      const refusal = { code: 'chain_unavailable', detail: `${sent.detail}; nothing was charged` } as const
      // Somebody else may have carried it out.
      return (await seen()) ?? { kind: 'failed', refusal }
    }
    case 'unknown': {
      // If the node answers again, its state is known; otherwise the next request or recovery asks again.
      const outcome = await resume(context, expected, sent.transaction, validBefore, since)
      // Another transaction has used its nonce, such as that of a dead process which recovery has sent again.
      return outcome.kind === 'failed' ? leftOut(outcome) : outcome
    }
    case 'sent':
      return confirm(context, { expected, validBefore }, sent.transaction, since, sent)
  }
}

/**
 * Finds the outcome of a transaction that another attempt has sent, or was about to send. `validBefore`, and `since`,
 * before which the payment was not used: milliseconds since the epoch.
 */
export async function resume(
  context: SettlementContext,
  expected: ExpectedPayment,
  transaction: OwnTransaction,
  validBefore: number,
  since: number,
): Promise<Settlement> {
  const seen = await context.chain.receipt(transaction.hash)
  if (seen.kind !== 'result') return UNCONFIRMED
  if (seen.result === null) {
    // While it is unmined, it has failed once it has expired or its account nonce is used.
    const status = (): Promise<Settlement | undefined> =>
      onchainStatus(
        context,
        expected,
        since,
        async (block) => isOver(block, validBefore) || (await isSpent(context.chain, transaction, block)),
      )
    const known = (await status()) ?? (await resend(context, transaction, status))
    // Mined in the meantime: its receipt has the gas cost.
    const isMined = known?.kind === 'settled' && known.receipt.transaction === transaction.hash
    if (known !== undefined && !isMined) return known
  }
  const outcome = await confirm(context, { expected, validBefore }, transaction, since)
  return outcome.kind === 'left out' ? failureOf(outcome) : outcome
}

function failureOf(outcome: LeftOut | Failed): Failed {
  return outcome.kind === 'failed' ? outcome : { ...SETTLEMENT_FAILED, ...outcome, kind: 'failed' }
}

/** Whether the account nonce of a transaction is used, by another transaction or by itself. */
async function isSpent(chain: Chain, { signer, nonce }: OwnTransaction, block: Block): Promise<boolean> {
  const mined = isAddress(signer) ? await chain.minedNonce(signer, block.number) : undefined
  return mined?.kind === 'result' && mined.result > BigInt(nonce)
}

/** Undefined when it may be mined now; otherwise the outcome of a payment whose transaction the node refuses. */
async function resend(
  context: SettlementContext,
  transaction: OwnTransaction,
  status: () => Promise<Settlement | undefined>,
): Promise<Settlement | undefined> {
  return (await submit(context, transaction)) === 'refused' ? ((await status()) ?? UNCONFIRMED) : undefined
}

/** The signed bytes of a transaction, which for a batch are kept once; undefined after they were erased. */
async function bytesOf(
  { ledger }: Pick<SettlementContext, 'ledger'>,
  { hash, members, raw }: OwnTransaction,
): Promise<string | undefined> {
  return members === undefined ? raw : findBatch(ledger, hash)
}

/** Sends the recorded bytes of a transaction of ours again. */
export async function resendOwn(context: SettlementContext, dispatch: Dispatch | undefined): Promise<void> {
  if (dispatch?.kind === 'own') await submit(context, dispatch)
}

async function submit(context: SettlementContext, transaction: OwnTransaction): Promise<'sent' | 'refused'> {
  const raw = await bytesOf(context, transaction)
  if (!isHex(raw)) return 'sent'
  const answer = await context.chain.broadcast(raw)
  if (answer.kind === 'refused' && !isKnown(answer.message)) return 'refused'
  context.signers.markResent(transaction)
  return 'sent'
}

/** Waits for the block of a transaction, and for those above it that are asked for. */
async function confirm(
  context: SettlementContext,
  { expected, validBefore }: Pick<Order, 'expected' | 'validBefore'>,
  transaction: OwnTransaction,
  since: number,
  tracked: Tracked = {
    receipt: () => context.chain.receipt(transaction.hash),
    payers: [],
    mined: () => undefined,
  },
): Promise<Settlement | LeftOut> {
  const { chain, limits } = context
  let mined = false
  // A transaction that has just come to the pool is in no block yet.
  await context.sleep(PACE.first)
  const found = await poll(context, PACE, async () => {
    // Read before the receipt, so that the receipt is at least as deep as this block.
    const head = limits.confirmations === 1 ? undefined : await chain.blockNumber()
    const seen = await tracked.receipt()
    if (seen.kind !== 'result') return undefined
    // A block that is undone takes its transactions with it, and not every node puts them back into its pool.
    if (mined && seen.result === null) await submit(context, transaction)
    mined = seen.result !== null
    if (seen.result === null) return undefined
    const counts =
      head === undefined ||
      (head.kind === 'result' && seen.result.block + BigInt(limits.confirmations) - 1n <= head.result)
    if (!counts || !(await isDeepEnough(context, seen.result, validBefore - LATE_SETTLEMENT_MS)))
      return undefined
    tracked.mined(seen.result)
    const { succeeded, logs, hash, gasCost } = seen.result
    const { members = Math.max(1, tracked.payers.length) } = transaction
    return succeeded && expected.proof.contains(logs, expected)
      ? settled(context, expected, { hash, gasCost: gasCost / BigInt(members), in: seen.result })
      : explainFailure(context, expected, seen.result, { since, members, payers: tracked.payers })
  })
  if (found !== undefined && found.kind !== 'unknown') return found
  // Another process may have replaced the transaction.
  return (await onchainStatus(context, expected, since, () => false)) ?? UNCONFIRMED
}

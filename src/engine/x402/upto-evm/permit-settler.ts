import type { Refusal } from '../../base/errors.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { CHECK_ALONE_MS } from '../../chains/evm/multicall.ts'
import { PERMIT2, UPTO_PROXY } from '../../base/permit2.ts'
import type { SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { TOO_LATE } from '../../chains/evm/transaction.ts'
import type { Journal, Settlement } from '../../payment/settlement.ts'
import type { Order } from '../exact-evm/order.ts'
import { settle } from '../exact-evm/own-settler.ts'
import type { Exposure } from '../exact-evm/payer-limits.ts'
import { exposureOf, preflight } from '../exact-evm/preflight.ts'
import type { SettlementContext } from '../exact-evm/settlement-context.ts'
import { NODE_UNREACHABLE } from '../exact-evm/node-unreachable.ts'
import { permitOrder } from './permit-order.ts'

/** Before the work: whether the most that the permit allows could be moved now, besides other payments of its payer. */
export async function preflightPermit(
  context: SettlementContext,
  signed: SignedPermit,
): Promise<Refusal | undefined> {
  const order = permitOrder(context.chain, signed, BigInt(signed.permit.amount))
  const exposure = exposureOf(order.expected, order)
  const missing = await missingContract(context)
  if (missing !== undefined) return missing
  // Without an allowance, the simulation says what to do about it.
  const { allowances } = context
  const refusal = (await preflight(context, order)) ?? (await reserveAllowance(context, signed, exposure))
  if (refusal === undefined) return undefined
  context.payers.release(exposure)
  allowances.release(exposure)
  return asOfPermit(refusal)
}

/** Frees what `preflightPermit` has reserved. */
export function releasePermit(context: SettlementContext, signed: SignedPermit): void {
  const order = permitOrder(context.chain, signed, BigInt(signed.permit.amount))
  const exposure = exposureOf(order.expected, order)
  context.payers.release(exposure)
  context.allowances.release(exposure)
}

/** A signed approval is used with its permit, so that nothing else draws on it. */
async function reserveAllowance(
  { allowances }: SettlementContext,
  { approval }: SignedPermit,
  exposure: Exposure,
): Promise<Refusal | undefined> {
  if (approval !== undefined) return undefined
  const short = await allowances.reserve(exposure)
  return short?.code === SHORT ? ALLOWANCE_SHORT : short
}

/** Moves an amount of at most what was signed. */
export async function settlePermit(
  context: SettlementContext,
  signed: SignedPermit,
  amount: bigint,
  journal: Journal,
): Promise<Settlement> {
  const order = permitOrder(context.chain, signed, amount)
  if (signed.approval !== undefined) return settle(context, order, journal)
  const { allowances } = context
  const exposure = exposureOf(order.expected, order)
  const settled = await allowances.whileSettling(
    exposure,
    () => settle(context, order, journal),
    () => isLate(context, order),
  )
  if (settled === 'late') return { kind: 'failed', refusal: TOO_LATE.refusal }
  if (settled.kind === 'settled') allowances.note(exposure, 'settled')
  return settled
}

function isLate({ now }: SettlementContext, { validBefore }: Order): boolean {
  return now() >= validBefore
}

/** Chains on which both contracts were seen. */
const seen = new WeakSet<Chain>()

/** A call of an address without code succeeds, and moves nothing. */
async function missingContract({ chain, multicall }: SettlementContext): Promise<Refusal | undefined> {
  if (seen.has(chain)) return undefined
  const found = await multicall.withCode([PERMIT2, UPTO_PROXY], CHECK_ALONE_MS)
  if (found === undefined) return NODE_UNREACHABLE
  if (!found.has(PERMIT2) || !found.has(UPTO_PROXY)) return NO_CONTRACT
  seen.add(chain)
  return undefined
}

const NO_CONTRACT: Refusal = {
  code: 'chain_unavailable',
  detail: 'this network does not have the contracts of scheme upto; nothing was charged',
}

const SHORT = 'invalid_exact_evm_insufficient_balance'

const ALLOWANCE_SHORT: Refusal = {
  code: 'permit2_allowance_required',
  detail: 'the allowance does not cover this payment and those of the same payer that are under way',
}

/** The limits of a payer are those of all schemes. */
function asOfPermit(refusal: Refusal): Refusal {
  return refusal.code === SHORT ? { ...refusal, code: 'permit2_insufficient_balance' } : refusal
}

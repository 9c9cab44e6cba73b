import { sameAddress, type Address } from '../../base/address.ts'
import type { Limits } from '../../base/networks.ts'
import type { TransactionReceipt } from '../../chains/evm/chain.ts'
import { balanceOf, isUsed } from '../../chains/evm/eip3009/token-state.ts'
import { riskOf, type GasBudget } from '../../chains/evm/gas-budget.ts'
import type { GasLosses, Revert } from '../../chains/evm/gas-losses.ts'
import type { Multicall } from '../../chains/evm/multicall.ts'
import type { BlockReference } from '../../ledger/payment-record.ts'
import type { Settlement } from '../../payment/settlement.ts'
import { onchainStatus, type ChainReader } from './onchain-status.ts'
import type { PayerLimits } from './payer-limits.ts'
import { nonceName, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** What is needed to see the effect and the cost of our own transactions. */
export interface ReceiptReader extends ChainReader {
  readonly limits: Limits
  readonly token: Address
  readonly multicall: Multicall
  readonly payers: PayerLimits
  readonly losses: GasLosses
  readonly budget: GasBudget
}

/** How long a payment waits for the node to say which accounts have code. */
const ACCOUNTS_MS = 5_000

/** It was in a batch that has not carried it out, and can still be carried out alone. */
export interface LeftOut {
  readonly kind: 'left out'
  /** The block that shows it. */
  readonly block?: BlockReference
}

export function leftOut({ block }: Omit<LeftOut, 'kind'>): LeftOut {
  return { kind: 'left out', ...(block && { block }) }
}

/** A transaction of ours. */
interface Carrier {
  /** Payments it was to carry out. */
  readonly members: number
  /** The payers of a batch that this process has sent. */
  readonly payers: readonly Address[]
  /** Milliseconds since the epoch, before which the payment was not used. */
  readonly since: number
}

/**
 * What became of a payment that its transaction has not carried out: a transaction of another account, or another one
 * of ours, may have been faster.
 */
export async function explainFailure(
  context: ReceiptReader,
  expected: ExpectedPayment,
  receipt: TransactionReceipt,
  { members, payers, since }: Carrier,
): Promise<Settlement | LeftOut | undefined> {
  const { hash, block, succeeded, gasCost } = receipt
  // A node that is behind the one that has shown the receipt does not know yet.
  const status = await onchainStatus(context, expected, since, ({ number }) => number >= block)
  if (status?.kind !== 'failed') return status
  if (payers.length > 0) {
    await chargeLoss(context, expected, receipt, payers)
    return leftOut(status)
  }
  if (succeeded) return status
  const { from } = expected
  const nonce = nonceName(expected)
  // The responsible payer of another process's batch is unknown.
  const payer = members === 1 ? from : undefined
  const cost = gasCost / BigInt(members)
  await noteLoss(context, { payer, hash, gasCost: cost, nonce })
  return status
}

/**
 * Counts the loss of a batch that has moved nothing for a payment. Payers whose accounts have got code since the
 * simulation may have burned the gas of all: the loss counts against them. When no account has code, no member was
 * carried out and this payment still could be, the batch itself was wrong: the loss counts against nobody, and no batch
 * is sent for a while. Otherwise the payment itself was the cause.
 */
async function chargeLoss(
  context: ReceiptReader,
  expected: ExpectedPayment,
  { hash, logs, gasCost, gasUsed }: TransactionReceipt,
  payers: readonly Address[],
): Promise<void> {
  const { from: payer } = expected
  const nonce = nonceName(expected)
  const { multicall, token } = context
  const share = gasCost / BigInt(payers.length)
  const withCode = await multicall.withCode(payers, ACCOUNTS_MS)
  const isEmpty = !logs.some(({ address }) => sameAddress(address, token))
  const isFault = withCode?.size === 0 && isEmpty && !(await isWithdrawn(context, expected))
  if (withCode === undefined || isFault) {
    multicall.pause()
    return noteLoss(context, { payer: undefined, hash, gasCost: share, nonce })
  }
  if (withCode.size > 0 && !withCode.has(payer)) return
  const usual = USUAL_GAS.batch + USUAL_GAS.member * BigInt(payers.length)
  const excess = withCode.size > 0 && gasUsed > usual ? (gasCost * (gasUsed - usual)) / gasUsed : 0n
  const burners = BigInt(Math.max(1, withCode.size))
  const lost = isEmpty && withCode.size > 0 ? gasCost / burners : share + excess / burners
  await noteLoss(context, { payer, hash, gasCost: lost, nonce })
}

/** Whether its payer has canceled the authorization, or moved the money away. */
async function isWithdrawn({ chain }: ReceiptReader, expected: ExpectedPayment): Promise<boolean> {
  const [used, balance] = await Promise.all([
    isUsed(chain, expected),
    balanceOf({ chain, token: expected.token }, expected.from),
  ])
  return used === true || (balance !== undefined && balance < expected.value)
}

/** Gas of a batch whose members have no code: what is above it was used by those that have. */
const USUAL_GAS = { batch: 30_000n, member: 45_000n }

async function noteLoss(
  { payers, losses, budget, limits }: ReceiptReader,
  loss: Omit<Revert, 'standing'>,
): Promise<void> {
  const { payer, nonce } = loss
  const standing = payer === undefined ? 'known' : budget.standing(riskOf({ payer, nonce }))
  if (payer !== undefined) payers.note({ payer }, 'reverted')
  await losses.add({ ...loss, standing }, limits.maxGasLoss)
  await budget.giveBack()
}

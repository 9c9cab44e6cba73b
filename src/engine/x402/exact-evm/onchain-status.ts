import { sameAddress, type Address } from '../../base/address.ts'
import type { Multicall } from '../../chains/evm/multicall.ts'
import { blockAt } from '../../chains/evm/block-at-time.ts'
import { addressTopic } from '../../chains/evm/transfer-log.ts'
import type { Block, Chain, TransactionReceipt } from '../../chains/evm/chain.ts'
import type { Limits } from '../../base/networks.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Settlement } from '../../payment/settlement.ts'
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, containsTransfer } from './authorization-log.ts'
import { balanceOf, isUsed, type ExpectedTransfer } from './token.ts'
import { riskOf, type GasBudget } from '../../chains/evm/gas-budget.ts'
import type { GasLosses, Revert } from '../../chains/evm/gas-losses.ts'
import type { PayerLimits } from './payer-limits.ts'
import type { Log } from '../../chains/evm/event-log.ts'
import { blockOf } from '../../chains/evm/finality.ts'

/** What is needed to see the outcome of a payment on one network. */
export interface ChainReader {
  readonly networkId: string
  readonly chain: Chain
  readonly limits: Pick<Limits, 'confirmations'>
}

/** What is needed to see the effect and the cost of our own transactions. */
export interface ReceiptReader extends ChainReader {
  readonly limits: Limits
  readonly token: Address
  readonly multicall: Multicall
  readonly payers: PayerLimits
  readonly losses: GasLosses
  readonly budget: GasBudget
}

/**
 * Finds out what became of a payment that somebody else may carry out: failed only when nobody can any more, because it
 * was canceled, used for something else, or is unused in a block at or after `end`. `end` and `since`, the time before
 * which it was not used: milliseconds since the epoch.
 */
export async function findTransfer(
  reader: ChainReader,
  expected: ExpectedTransfer,
  end: number,
  since: number,
): Promise<Settlement> {
  return (await onchainStatus(reader, expected, since, (block) => isOver(block, end))) ?? UNCONFIRMED
}

/**
 * What became of an authorization, by what the chain shows in the newest block that has the confirmations asked for;
 * undefined while it may still become something else, or the node cannot say: to be asked again. The truth is the log
 * of its use with its transfer, in any transaction of anybody.
 *
 * `since`: milliseconds since the epoch, before which it was not used. `hasFailed` applies to one that is unused up to a
 * block whether it stays so.
 *
 * Everything is asked of one block, by its number: behind one address there may be several nodes, and one that has not
 * got there yet says so instead of answering for an older state.
 */
export async function onchainStatus(
  reader: ChainReader,
  expected: ExpectedTransfer,
  since: number,
  hasFailed: (block: Block) => boolean | Promise<boolean>,
): Promise<Settlement | undefined> {
  const { chain, limits } = reader
  const block = await newestThatCounts(chain, limits.confirmations)
  if (block === undefined) return undefined
  const used = await isUsed(chain, expected, block.number)
  if (used === undefined) return undefined
  if (used) return statusOfUse(reader, expected, since, block)
  if (!(await hasFailed(block))) return undefined
  // It may be used in a block that does not count yet, or that was mined between the two questions: not every node
  // answers for exactly the block that it is asked for.
  return (await isUsed(chain, expected)) === false ? SETTLEMENT_FAILED : undefined
}

async function statusOfUse(
  reader: ChainReader,
  expected: ExpectedTransfer,
  since: number,
  block: Block,
): Promise<Settlement | undefined> {
  const log = await findAuthorization(reader.chain, expected, since, block)
  if (log === undefined) return UNCONFIRMED
  if (log.topics[0] === AUTHORIZATION_CANCELED) return SETTLEMENT_FAILED
  const receipt = await reader.chain.receipt(log.transactionHash)
  if (receipt.kind !== 'result' || receipt.result === null) return undefined
  // Else it was used for another transfer that was signed under the same nonce.
  return containsTransfer(receipt.result.logs, expected)
    ? settled(reader, expected, { hash: log.transactionHash, in: receipt.result })
    : SETTLEMENT_FAILED
}

async function newestThatCounts(chain: Chain, confirmations: number): Promise<Block | undefined> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return undefined
  if (confirmations === 1) return head.result
  const number = head.result.number - BigInt(confirmations) + 1n
  const block = number < 0n ? undefined : await chain.block(number)
  return block?.kind === 'result' ? block.result : undefined
}

/** No later block can carry an authorization out: the token takes it only in blocks older than its end. */
export function isOver({ timestamp }: Block, validBefore: number): boolean {
  return Number(timestamp) * 1000 >= validBefore
}

/** Most blocks asked for at once; providers that allow fewer say so. */
const WIDEST = 5_000n
const NARROWER = 10n
/** Most questions for one payment. */
const MOST = 100
/** How far our clock may be ahead of the chain’s, in seconds. */
const SKEW = 30n

/**
 * The log of how an authorization that cannot be used any more was used up. `since`: milliseconds since the epoch,
 * before which it was not; `newest`: the last block that counts. Undefined when the chain cannot be asked, or the log is
 * too far from `since` to be found.
 *
 * Most are young: the newest blocks are asked first. Else the search goes forward from `since`, for a payment is used
 * soon after it was taken or not at all.
 */
async function findAuthorization(
  chain: Chain,
  { token, from, nonce }: ExpectedTransfer,
  since: number,
  newest: Block,
): Promise<Log | undefined> {
  const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], addressTopic(from), nonce]
  const ask = (first: bigint, last: bigint) =>
    chain.logs({ address: token, topics }, { from: first, to: last })
  const near = newest.number < WIDEST ? 0n : newest.number - WIDEST + 1n
  const recent = await ask(near, newest.number)
  if (recent.kind === 'unreachable') return undefined
  if (recent.kind === 'result' && recent.result.length > 0) return recent.result[0]
  const last = recent.kind === 'result' ? near - 1n : newest.number
  let width = recent.kind === 'result' ? WIDEST : WIDEST / NARROWER
  let first = await blockAt(chain, BigInt(Math.floor(since / 1000)) - SKEW, newest)
  for (let asked = 0; first !== undefined && first <= last && asked < MOST; asked += 1) {
    const end: bigint = first + width - 1n < last ? first + width - 1n : last
    const answer = await ask(first, end)
    if (answer.kind === 'result') {
      if (answer.result.length > 0) return answer.result[0]
      first = end + 1n
    } else if (answer.kind === 'refused' && width > 1n) width = width > NARROWER ? width / NARROWER : 1n
    else return undefined
  }
  return undefined
}

/** How long accounts may keep a payment waiting. */
const ACCOUNTS_MS = 5_000

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
 * What became of a payment that its transaction has not carried out: somebody else may have been faster, or another
 * transaction of ours. `left out`: it was in a batch, and can still be carried out.
 */
export async function explainFailure(
  context: ReceiptReader,
  expected: ExpectedTransfer,
  receipt: TransactionReceipt,
  { members, payers, since }: Carrier,
): Promise<Settlement | 'left out' | undefined> {
  const { hash, block, succeeded, gasCost } = receipt
  // A node that is behind the one that has shown the receipt does not know yet.
  const status = await onchainStatus(context, expected, since, ({ number }) => number >= block)
  if (status?.kind !== 'failed') return status
  if (payers.length > 0) {
    await chargeLoss(context, expected, receipt, payers)
    return 'left out'
  }
  if (succeeded) return status
  const { from, nonce } = expected
  // The responsible payer of another process's batch is unknown.
  const payer = members === 1 ? from : undefined
  const cost = gasCost / BigInt(members)
  await noteLoss(context, { payer, hash, gasCost: cost, nonce })
  return status
}

/**
 * Whose fault it was that a batch has moved nothing for a payment. A payer whose account has taken code since the
 * simulation may have burned the gas of all; where all are left out, nobody has, and the payment could still be carried
 * out, the batch itself was wrong, which counts against nobody, and no batch is sent for a while. Otherwise it was the
 * payment's own.
 */
async function chargeLoss(
  context: ReceiptReader,
  expected: ExpectedTransfer,
  { hash, logs, gasCost, gasUsed }: TransactionReceipt,
  payers: readonly Address[],
): Promise<void> {
  const { from: payer, nonce } = expected
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
async function isWithdrawn({ chain }: ReceiptReader, expected: ExpectedTransfer): Promise<boolean> {
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

/** The proof that a payment was carried out. */
export function settled(
  { networkId }: { readonly networkId: string },
  { from, value }: ExpectedTransfer,
  { hash: transaction, gasCost, in: block }: Carried,
): Settlement {
  const moved = { transaction, network: networkId, payer: from, amount: value.toString() }
  const paid = gasCost === undefined ? {} : { gasCost: gasCost.toString() }
  return { kind: 'settled', receipt: { ...moved, ...paid, ...(block && blockOf(block)) } }
}

/** The transaction that has carried a payment out. */
interface Carried {
  readonly hash: string
  readonly gasCost?: bigint
  /** As a node of ours has shown it. */
  readonly in?: Pick<TransactionReceipt, 'block' | 'blockHash'>
}

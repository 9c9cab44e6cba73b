import type { Limits } from '../../base/networks.ts'
import type { Block, Chain, TransactionReceipt } from '../../chains/evm/chain.ts'
import { blockOf, isOver } from '../../chains/evm/finality.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Settlement } from '../../payment/settlement.ts'
import type { ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** What is needed to see the outcome of a payment on one network. */
export interface ChainReader {
  readonly networkId: string
  readonly chain: Chain
  readonly limits: Pick<Limits, 'confirmations'>
}

/**
 * Finds out what became of a payment that somebody else may carry out: failed only when nobody can any more, because it
 * was canceled, used for something else, or is unused in a block at or after `end`. `end` and `since`, the time before
 * which it was not used: milliseconds since the epoch.
 */
export async function findTransfer(
  reader: ChainReader,
  expected: ExpectedPayment,
  end: number,
  since: number,
): Promise<Settlement> {
  return (await onchainStatus(reader, expected, since, (block) => isOver(block, end))) ?? UNCONFIRMED
}

/**
 * The outcome of a transfer as that of its payment; undefined while it may change. `since`: milliseconds since
 * the epoch, before which it was not used.
 */
export async function onchainStatus(
  reader: ChainReader,
  expected: ExpectedPayment,
  since: number,
  hasFailed: (block: Block) => boolean | Promise<boolean>,
): Promise<Settlement | undefined> {
  const { chain, limits } = reader
  const confirmed = { chain, confirmations: limits.confirmations }
  const outcome = await expected.proof.outcome(confirmed, expected, since, hasFailed)
  switch (outcome?.kind) {
    case 'moved': {
      const { transaction: hash, receipt, amount: value = expected.value } = outcome
      return settled(reader, { ...expected, value }, { hash, in: receipt })
    }
    case 'void':
      return {
        ...SETTLEMENT_FAILED,
        ...blockOf({ block: outcome.block.number, blockHash: outcome.block.hash }),
      }
    case 'used':
      return UNCONFIRMED
    case undefined:
      return undefined
  }
}

/** The proof that a payment was carried out. */
export function settled(
  { networkId }: { readonly networkId: string },
  { from, value }: ExpectedPayment,
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

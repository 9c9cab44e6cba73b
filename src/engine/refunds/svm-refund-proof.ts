import { findSvmNetwork, type SvmNetwork } from '../base/networks.ts'
import { MEMO_PROGRAM } from '../base/svm-programs.ts'
import { tokenAccountOf } from '../base/token-account.ts'
import { readTransaction } from '../chains/svm/transaction.ts'
import { readTransferChecked } from '../chains/svm/transfer-checked.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { refundMark } from './refund-proof.ts'

/** What is sent back for a payment on Solana, and the memo under which the chain shows it. */
export interface SvmRefundTerms {
  readonly network: SvmNetwork
  readonly payer: string
  /** Of the payer. */
  readonly tokenAccount: string
  /** Atomic units. */
  readonly amount: bigint
  /** It follows from the payment’s id. */
  readonly memo: string
}

/** Undefined when nothing was charged, or this version does not know the network or the token. */
export function svmRefundTermsOf({
  id,
  network: name,
  asset,
  receipt,
}: PaymentRecord): SvmRefundTerms | undefined {
  const network = findSvmNetwork(name)
  if (receipt === undefined || network === undefined || network.token.address !== asset) return undefined
  const { payer, amount } = receipt
  const tokenAccount = tokenAccountOf(payer, asset)
  if (tokenAccount === undefined) return undefined
  return { network, payer, tokenAccount, amount: BigInt(amount), memo: refundMark(id) }
}

/**
 * The account that has sent the refund, by the bytes of a transaction that has succeeded; undefined when they show none.
 * The memo alone proves nothing, since anybody can write it, and neither does a transfer of the same amount.
 */
export function svmRefunderIn(
  { network, tokenAccount, amount, memo }: SvmRefundTerms,
  bytes: Uint8Array,
): string | undefined {
  const read = readTransaction(bytes)
  if (read.kind !== 'transaction') return undefined
  const { instructions } = read.transaction
  const isNamed = instructions.some(
    ({ program, data }) => program === MEMO_PROGRAM && Buffer.from(data).toString() === memo,
  )
  if (!isNamed) return undefined
  const transfer = instructions
    .map(readTransferChecked)
    .find(
      (each) =>
        each !== undefined &&
        each.mint === network.token.address &&
        each.destination === tokenAccount &&
        each.amount === amount,
    )
  return transfer?.authority
}

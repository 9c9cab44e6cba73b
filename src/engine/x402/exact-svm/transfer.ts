import { COMPUTE_BUDGET_PROGRAM, LIGHTHOUSE_PROGRAM, MEMO_PROGRAM } from '../../base/svm-programs.ts'
import type { Instruction, SvmTransaction } from '../../chains/svm/transaction.ts'
import { readTransferChecked } from '../../chains/svm/transfer-checked.ts'

/** What a transaction of a payment does, once its layout is the one that the scheme allows. */
export interface SvmTransfer {
  /** Pays for the transaction, and is used for nothing else in it. */
  readonly feePayer: string
  /** Whose tokens move, by its signature. */
  readonly payer: string
  /** Token accounts. */
  readonly source: string
  readonly destination: string
  readonly mint: string
  /** Atomic units. */
  readonly amount: bigint
  readonly decimals: number
  /** Lamports that the fee payer loses with it, whatever becomes of it. */
  readonly fee: bigint
}

type ReadTransfer =
  | { readonly kind: 'transfer'; readonly transfer: SvmTransfer }
  /** `detail`: what the buyer has to change. */
  | { readonly kind: 'refused'; readonly detail: string }

/** Limit, price, transfer; then what wallets add, and a memo. */
const LEAST_INSTRUCTIONS = 3
const MOST_INSTRUCTIONS = 7
const MOST_UNITS = 200_000
/** Micro-lamports for each compute unit (scheme_exact_svm: 5 lamports). */
const MOST_UNIT_PRICE = 5_000_000n
/** Lamports of one transaction in all: about two cents. */
const MOST_FEE = 100_000n
const FEE_OF_A_SIGNATURE = 5_000n
const MOST_MEMO_BYTES = 256

const SET_LIMIT = 2
const SET_PRICE = 3

/**
 * Reads the one transfer of a transaction by the rules of the scheme (scheme_exact_svm, verification rules): nothing but
 * these instructions in this order, and the fee payer in none of them. Then the fee payer can lose the fee, which is
 * bounded, and nothing else.
 */
export function readTransfer({ accounts, signatures, instructions }: SvmTransaction): ReadTransfer {
  const [feePayer = '', payer = ''] = accounts
  const [limit, price, move, ...others] = instructions
  if (
    limit === undefined ||
    price === undefined ||
    move === undefined ||
    instructions.length > MOST_INSTRUCTIONS
  )
    return refuse(
      `it has ${instructions.length} instructions, not ${LEAST_INSTRUCTIONS} to ${MOST_INSTRUCTIONS}`,
    )
  if (instructions.some(({ program, accounts: used }) => program === feePayer || used.includes(feePayer)))
    return refuse('its fee payer occurs in an instruction')
  if (signatures.length !== 2) return refuse('its signers are not the fee payer and the payer')
  const units = readUnits(limit)
  if (units === undefined) return refuse('its first instruction does not set the compute unit limit')
  if (units > MOST_UNITS) return refuse(`its compute unit limit is above ${MOST_UNITS}`)
  const unitPrice = readUnitPrice(price)
  if (unitPrice === undefined) return refuse('its second instruction does not set the compute unit price')
  if (unitPrice > MOST_UNIT_PRICE)
    return refuse(`its compute unit price is above ${MOST_UNIT_PRICE} micro-lamports`)
  const fee = feeOf(signatures.length, units, unitPrice)
  if (fee > MOST_FEE) return refuse(`its fee is above ${MOST_FEE} lamports`)
  const moved = readTransferChecked(move)
  if (moved === undefined) return refuse('its third instruction is no TransferChecked of the token program')
  if (moved.authority !== payer) return refuse('its second signer is not the owner of the tokens')
  if (moved.source === moved.destination) return refuse('it transfers tokens to where they are')
  const problem = problemOf(others)
  if (problem !== undefined) return refuse(problem)
  const { authority: _authority, ...transfer } = moved
  return { kind: 'transfer', transfer: { feePayer, payer, fee, ...transfer } }
}

function refuse(detail: string): ReadTransfer {
  return { kind: 'refused', detail }
}

function readUnits({ program, accounts, data }: Instruction): number | undefined {
  if (program !== COMPUTE_BUDGET_PROGRAM || accounts.length > 0) return undefined
  return data.length === 5 && data[0] === SET_LIMIT ? viewOf(data).getUint32(1, true) : undefined
}

function readUnitPrice({ program, accounts, data }: Instruction): bigint | undefined {
  if (program !== COMPUTE_BUDGET_PROGRAM || accounts.length > 0) return undefined
  return data.length === 9 && data[0] === SET_PRICE ? viewOf(data).getBigUint64(1, true) : undefined
}

function feeOf(signatures: number, units: number, unitPrice: bigint): bigint {
  const priority = (BigInt(units) * unitPrice + 999_999n) / 1_000_000n
  return BigInt(signatures) * FEE_OF_A_SIGNATURE + priority
}

/** What is wrong with the instructions after the transfer. */
function problemOf(others: readonly Instruction[]): string | undefined {
  const memos = others.filter(({ program }) => program === MEMO_PROGRAM)
  if (others.some(({ program }) => program !== MEMO_PROGRAM && program !== LIGHTHOUSE_PROGRAM))
    return 'after the transfer, it calls a program other than Memo and Lighthouse'
  if (memos.length > 1) return 'it has more than one memo'
  if (memos.some(({ data, accounts }) => data.length > MOST_MEMO_BYTES || accounts.length > 0))
    return `its memo names an account, or is longer than ${MOST_MEMO_BYTES} bytes`
  return memos.every(({ data }) => isUtf8(data)) ? undefined : 'its memo is not UTF-8'
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength)
}

import { TOKEN_PROGRAM } from '../../base/svm-programs.ts'
import type { Instruction } from './transaction.ts'

/** A transfer of the token program that names its mint, signed by one key. Addresses are in base58. */
export interface TransferChecked {
  /** Token accounts. */
  readonly source: string
  readonly destination: string
  readonly mint: string
  /** Signs for the tokens. */
  readonly authority: string
  /** Atomic units. */
  readonly amount: bigint
  readonly decimals: number
}

const TRANSFER_CHECKED = 12

/** Undefined when an instruction is anything else. */
export function readTransferChecked({ program, accounts, data }: Instruction): TransferChecked | undefined {
  const [source, mint, destination, authority, ...signers] = accounts
  if (program !== TOKEN_PROGRAM || data.length !== 10 || data[0] !== TRANSFER_CHECKED) return undefined
  if (authority === undefined || signers.length > 0) return undefined
  if (source === undefined || mint === undefined || destination === undefined) return undefined
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  return {
    source,
    mint,
    destination,
    authority,
    amount: view.getBigUint64(1, true),
    decimals: view.getUint8(9),
  }
}

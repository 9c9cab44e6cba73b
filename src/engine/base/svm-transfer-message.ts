import { COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, TOKEN_PROGRAM } from './svm-programs.ts'
import { writeMessage } from './svm-message.ts'

/** A transfer of tokens with a memo. Addresses are in base58. */
interface TransferTerms {
  /** Pays the network’s fee; it may be the owner. */
  readonly feePayer: string
  /** Signs for the tokens. */
  readonly owner: string
  /** Token accounts. */
  readonly source: string
  readonly destination: string
  readonly mint: string
  readonly decimals: number
  /** Atomic units. */
  readonly amount: bigint
  readonly memo: string
  readonly blockhash: string
}

/** What a transfer with a memo takes, as the official client asks for it. */
const COMPUTE_UNITS = 20_000
/** Micro-lamports for each unit: the least that is more than nothing. */
const UNIT_PRICE = 1n

/** The message that fee payer and owner sign, in this order: limit, price, transfer, memo. */
export function writeTransferMessage(terms: TransferTerms): Buffer {
  const { feePayer, owner, source, destination, mint, decimals, amount, memo, blockhash } = terms
  const payers = [{ address: feePayer, signs: true, writable: true }]
  if (owner !== feePayer) payers.push({ address: owner, signs: true, writable: false })
  return writeMessage({
    accounts: [
      ...payers,
      { address: source, signs: false, writable: true },
      { address: destination, signs: false, writable: true },
      ...[mint, COMPUTE_BUDGET_PROGRAM, TOKEN_PROGRAM, MEMO_PROGRAM].map((address) => ({
        address,
        signs: false,
        writable: false,
      })),
    ],
    blockhash,
    instructions: [
      { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: unitLimit(COMPUTE_UNITS) },
      { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: unitPrice(UNIT_PRICE) },
      {
        program: TOKEN_PROGRAM,
        accounts: [source, mint, destination, owner],
        data: transferChecked(amount, decimals),
      },
      { program: MEMO_PROGRAM, accounts: [], data: Buffer.from(memo) },
    ],
  })
}

function unitLimit(units: number): Uint8Array {
  const data = Buffer.alloc(5)
  data.writeUInt8(2)
  data.writeUInt32LE(units, 1)
  return data
}

function unitPrice(price: bigint): Uint8Array {
  const data = Buffer.alloc(9)
  data.writeUInt8(3)
  data.writeBigUInt64LE(price, 1)
  return data
}

function transferChecked(amount: bigint, decimals: number): Uint8Array {
  const data = Buffer.alloc(10)
  data.writeUInt8(12)
  data.writeBigUInt64LE(amount, 1)
  data.writeUInt8(decimals, 9)
  return data
}

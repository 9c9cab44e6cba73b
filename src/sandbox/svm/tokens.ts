import { type Address, address, type EncodedAccount, getAddressEncoder, lamports } from '@solana/kit'
import { encodeBase58 } from '../../engine/base/base58.ts'
import { TOKEN_PROGRAM } from '../../engine/base/svm-programs.ts'

const DECIMALS = 6

/** Nobody has its key: the sandbox writes balances into the accounts. */
const MINT_AUTHORITY = address('SandboxMint11111111111111111111111111111111')

const MINT_BYTES = 82
const ACCOUNT_BYTES = 165
const INITIALIZED = 1
/** Lamports that keep an account of each size for good. */
const RENT = { [MINT_BYTES]: 1_461_600n, [ACCOUNT_BYTES]: 2_039_280n } as const

/** A token account as the program stores it. */
export interface TokenAccount {
  readonly mint: string
  readonly owner: string
  readonly amount: bigint
  readonly state: number
}

export interface Mint {
  readonly supply: bigint
  readonly decimals: number
  readonly isInitialized: boolean
}

/** Undefined when the account is no token account. */
export function readTokenAccount(account: EncodedAccount): TokenAccount | undefined {
  const { data, programAddress } = account
  if (programAddress !== TOKEN_PROGRAM || data.length !== ACCOUNT_BYTES) return undefined
  const bytes = Uint8Array.from(data)
  return {
    mint: encodeBase58(bytes.slice(0, 32)),
    owner: encodeBase58(bytes.slice(32, 64)),
    amount: viewOf(bytes).getBigUint64(64, true),
    state: bytes[108] ?? 0,
  }
}

/** Undefined when the account is no mint. */
export function readMint({ data, programAddress }: EncodedAccount): Mint | undefined {
  if (programAddress !== TOKEN_PROGRAM || data.length !== MINT_BYTES) return undefined
  return {
    supply: viewOf(Uint8Array.from(data)).getBigUint64(36, true),
    decimals: data[44] ?? 0,
    isInitialized: data[45] === INITIALIZED,
  }
}

/** A mint with six decimals. */
export function mintAccount(mint: string, supply: bigint): EncodedAccount {
  const data = new Uint8Array(MINT_BYTES)
  const view = viewOf(data)
  view.setUint32(0, INITIALIZED, true)
  data.set(bytesOf(MINT_AUTHORITY), 4)
  view.setBigUint64(36, supply, true)
  view.setUint8(44, DECIMALS)
  view.setUint8(45, INITIALIZED)
  return ownedByTokenProgram(address(mint), data, RENT[MINT_BYTES])
}

export function tokenAccount(at: Address, { mint, owner, amount, state }: TokenAccount): EncodedAccount {
  const data = new Uint8Array(ACCOUNT_BYTES)
  data.set(bytesOf(address(mint)), 0)
  data.set(bytesOf(address(owner)), 32)
  viewOf(data).setBigUint64(64, amount, true)
  viewOf(data).setUint8(108, state)
  return ownedByTokenProgram(at, data, RENT[ACCOUNT_BYTES])
}

function ownedByTokenProgram(at: Address, data: Uint8Array, balance: bigint): EncodedAccount {
  return {
    address: at,
    data,
    executable: false,
    lamports: lamports(balance),
    programAddress: address(TOKEN_PROGRAM),
    space: BigInt(data.length),
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

function bytesOf(of: Address): Uint8Array {
  return Uint8Array.from(getAddressEncoder().encode(of))
}

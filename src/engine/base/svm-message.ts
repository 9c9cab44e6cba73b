import { decodeBase58 } from './base58.ts'

/** An account that a transaction names. */
export interface SvmAccountUse {
  /** Base58. */
  readonly address: string
  readonly signs: boolean
  readonly writable: boolean
}

export interface SvmInstruction {
  readonly program: string
  /** Addresses. */
  readonly accounts: readonly string[]
  readonly data: Uint8Array
}

interface SvmMessage {
  /** The one that pays the fee first, then the other signers; writable ones before others in each group. */
  readonly accounts: readonly SvmAccountUse[]
  readonly blockhash: string
  readonly instructions: readonly SvmInstruction[]
}

/** Marks a message of version 0. */
const VERSION_0 = 0x80
/** A message names no lookup tables: a seller who checks it sees every account. */
const NO_TABLES = 0

/** A message as Solana signs it; throws when a text is no address, or an instruction uses an account that is not listed. */
export function writeMessage({ accounts, blockhash, instructions }: SvmMessage): Buffer {
  const signers = accounts.filter(({ signs }) => signs)
  const readers = (signs: boolean) =>
    accounts.filter((account) => account.signs === signs && !account.writable).length
  const places = new Map(accounts.map(({ address }, place) => [address, place]))
  const placeOf = (address: string): number => {
    const place = places.get(address)
    if (place === undefined) throw new TypeError(`${address} is not listed`)
    return place
  }
  return Buffer.concat([
    Uint8Array.of(VERSION_0, signers.length, readers(true), readers(false), accounts.length),
    ...accounts.map(({ address }) => bytesOf(address)),
    bytesOf(blockhash),
    Uint8Array.of(instructions.length),
    ...instructions.flatMap(({ program, accounts: used, data }) => [
      Uint8Array.of(placeOf(program), used.length, ...used.map(placeOf)),
      lengthOf(data),
      data,
    ]),
    Uint8Array.of(NO_TABLES),
  ])
}

function bytesOf(text: string): Uint8Array {
  const bytes = decodeBase58(text, 32)
  if (bytes === undefined) throw new TypeError(`${text} is no address`)
  return bytes
}

/** In seven bits a byte, lowest first. Other lists here have fewer than 128 entries, and so one byte. */
function lengthOf({ length }: Uint8Array): Uint8Array {
  return length < 128 ? Uint8Array.of(length) : Uint8Array.of((length & 0x7f) | 0x80, length >> 7)
}

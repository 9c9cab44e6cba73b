import { encodeBase58 } from '../../base/base58.ts'

/** A transaction of Solana as it is sent, with accounts that it names itself. */
export interface SvmTransaction {
  /** One for each required signer, in the order of `accounts`; all zero where one is missing. */
  readonly signatures: readonly Uint8Array[]
  /** What is signed. */
  readonly message: Uint8Array
  /** Addresses: those that must sign come first, and the first one pays the fees. */
  readonly accounts: readonly string[]
  /** Its lifetime: no block can contain it once the chain has forgotten this hash. */
  readonly blockhash: string
  readonly instructions: readonly Instruction[]
}

export interface Instruction {
  /** Address. */
  readonly program: string
  /** Addresses. */
  readonly accounts: readonly string[]
  readonly data: Uint8Array
}

export const SIGNATURE_BYTES = 64
const KEY_BYTES = 32
/** A packet of the network. */
const LONGEST = 1_232
/** The highest bit of a message that is not of the first format; its other bits are the version. */
const VERSIONED = 0x80

type Read =
  | { readonly kind: 'transaction'; readonly transaction: SvmTransaction }
  | { readonly kind: 'malformed'; readonly detail: string }

/**
 * Reads a transaction of the first format or of version 0. One that takes addresses from lookup tables is refused: what
 * is in a table may change after it was checked.
 */
export function readTransaction(bytes: Uint8Array): Read {
  try {
    return { kind: 'transaction', transaction: read(bytes) }
  } catch (fault) {
    if (fault instanceof Unreadable) return { kind: 'malformed', detail: fault.message }
    throw fault
  }
}

class Unreadable extends Error {}

function read(bytes: Uint8Array): SvmTransaction {
  if (bytes.length > LONGEST) throw new Unreadable(`it is longer than ${LONGEST} bytes`)
  const reader = new ByteReader(bytes)
  const signatures = reader.list(() => reader.take(SIGNATURE_BYTES))
  const message = reader.rest()
  const [first = 0] = message
  if (first >= VERSIONED && reader.byte() !== VERSIONED)
    throw new Unreadable('it is of a version that is not known here')
  const required = reader.byte()
  const readonlySigned = reader.byte()
  const readonlyUnsigned = reader.byte()
  const accounts = reader.list(() => encodeBase58(reader.take(KEY_BYTES)))
  const blockhash = encodeBase58(reader.take(KEY_BYTES))
  const at = (place: number): string => {
    const account = accounts[place]
    if (account === undefined) throw new Unreadable('an instruction uses an account that is not listed')
    return account
  }
  const instructions = reader.list(() => ({
    program: at(reader.byte()),
    accounts: reader.list(() => at(reader.byte())),
    data: reader.bytes(),
  }))
  if (first >= VERSIONED && reader.length() > 0) throw new Unreadable('it uses address lookup tables')
  if (!reader.isAtEnd) throw new Unreadable('something follows its end')
  const unsigned = accounts.length - required
  if (required < 1 || unsigned < 0 || readonlySigned >= required || readonlyUnsigned > unsigned)
    throw new Unreadable('its header does not fit its accounts')
  if (signatures.length !== required) throw new Unreadable('it has not one signature for each signer')
  if (new Set(accounts).size !== accounts.length) throw new Unreadable('an account is listed twice')
  return { signatures, message, accounts, blockhash, instructions }
}

/** The transaction as it is sent. */
export function writeTransaction({
  signatures,
  message,
}: Pick<SvmTransaction, 'signatures' | 'message'>): Uint8Array {
  // Fewer than 128 signatures fit into a packet, so that their number is one byte.
  return Buffer.concat([Uint8Array.of(signatures.length), ...signatures, message])
}

class ByteReader {
  readonly #bytes: Uint8Array
  #place = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#place === this.#bytes.length
  }

  take(count: number): Uint8Array {
    const end = this.#place + count
    if (end > this.#bytes.length) throw new Unreadable('it is cut off')
    const taken = this.#bytes.subarray(this.#place, end)
    this.#place = end
    return taken
  }

  byte(): number {
    return this.take(1)[0] ?? 0
  }

  /** A length in seven bits a byte, lowest first; another spelling of the same number is no length. */
  length(): number {
    let length = 0
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.byte()
      length |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        if (byte === 0 && shift > 0) break
        return length
      }
    }
    throw new Unreadable('a length is not spelt as it should be')
  }

  bytes(): Uint8Array {
    return this.take(this.length())
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: this.length() }, read)
  }

  /** Everything that has not been taken. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#place)
  }
}

import { keccak256 } from 'js-sha3'
import type { Address } from '../../base/address.ts'

/** A number or an address as a word of the ABI or an event topic: 64 hexadecimal digits. */
export function word(value: bigint | Address): string {
  return (typeof value === 'bigint' ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, '0')
}

/** The first four bytes of calldata, which name the function, in hexadecimal digits. */
export function selector(signature: string): string {
  return keccak256(signature).slice(0, 8)
}

/** Bytes at the end of calldata, in hexadecimal digits: their length, then the bytes padded to whole words. */
export function bytes(hex: `0x${string}`): string {
  const digits = hex.slice(2)
  return word(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
}

/**
 * Decodes the result of a function that returns one string, from hexadecimal digits: its offset, its length, its bytes.
 * Undefined when it is cut off.
 */
export function decodeText(digits: string): string | undefined {
  const encoded = Buffer.from(digits, 'hex')
  if (encoded.length < 64) return undefined
  const length = Number(BigInt(`0x${encoded.toString('hex', 32, 64)}`))
  return length > encoded.length - 64 ? undefined : encoded.toString('utf8', 64, 64 + length)
}

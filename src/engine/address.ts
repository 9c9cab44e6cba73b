import { keccak_256 } from '@noble/hashes/sha3'

/** An EVM address as 0x and 40 hexadecimal digits. */
export type Address = `0x${string}`

const FORM = /^0x[0-9a-fA-F]{40}$/

/**
 * Whether a text is an EVM address: 0x and 40 hexadecimal digits, in any case.
 *
 * @example
 * import { isAddress } from 'ratecard/handler'
 *
 * console.log(isAddress('0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')) // true
 */
export function isAddress(text: string): text is Address {
  return FORM.test(text)
}

/** The address in its EIP-55 spelling, whose letter cases are a checksum. */
export function toChecksum(address: string): Address {
  const digits = address.slice(2).toLowerCase()
  const hash = keccak_256(Buffer.from(digits, 'ascii'))
  const spelt = Array.from(digits).map((digit, index) => {
    const half = hash[index >> 1] ?? 0
    const nibble = index % 2 === 0 ? half >> 4 : half & 15
    return nibble >= 8 ? digit.toUpperCase() : digit
  })
  return `0x${spelt.join('')}`
}

/** Whether a mixed-case spelling carries the right checksum; all-lower and all-upper spellings carry none. */
export function hasSoundChecksum(address: string): boolean {
  const digits = address.slice(2)
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return true
  return toChecksum(address) === address
}

/** Addresses are numbers: their letter case says nothing about which one is meant. */
export function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

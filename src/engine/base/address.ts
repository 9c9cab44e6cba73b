import { keccak256 } from 'js-sha3'

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

/** The EIP-55 form of an address, whose letter case is a checksum. */
export function toChecksum(address: string): Address {
  const digits = address.slice(2).toLowerCase()
  const hash = keccak256(digits)
  const spelt = Array.from(digits).map((digit, index) =>
    (hash[index] ?? '') >= '8' ? digit.toUpperCase() : digit,
  )
  return `0x${spelt.join('')}`
}

/** Whether a mixed-case spelling carries the right checksum; all-lower and all-upper spellings carry none. */
export function hasSoundChecksum(address: string): boolean {
  const digits = address.slice(2)
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return true
  return toChecksum(address) === address
}

/** Compares addresses regardless of letter case, which does not change the address. */
export function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const VALUES: ReadonlyMap<string, number> = new Map(
  Array.from(ALPHABET, (character, value) => [character, value]),
)

/** Writes bytes in base58, as Solana writes keys, hashes and signatures. */
export function encodeBase58(bytes: Uint8Array): string {
  const digits: number[] = []
  for (const byte of bytes) {
    let carry = byte
    for (let place = 0; place < digits.length; place += 1) {
      carry += (digits[place] ?? 0) * 256
      digits[place] = carry % 58
      carry = Math.floor(carry / 58)
    }
    for (; carry > 0; carry = Math.floor(carry / 58)) digits.push(carry % 58)
  }
  const zeros = leading(bytes, (byte) => byte === 0)
  return (
    '1'.repeat(zeros) +
    digits
      .reverse()
      .map((digit) => ALPHABET[digit])
      .join('')
  )
}

/** The bytes of a text in base58; undefined when it is none, or has not this length in bytes. */
export function decodeBase58(text: string, length: number): Uint8Array | undefined {
  // 11 characters hold 8 bytes: longer texts are not worth the work, which grows with the square of their length.
  if (text.length > Math.ceil(length * 1.4) + 1) return undefined
  const bytes: number[] = []
  for (const character of text) {
    const value = VALUES.get(character)
    if (value === undefined) return undefined
    let carry = value
    for (let place = 0; place < bytes.length; place += 1) {
      carry += (bytes[place] ?? 0) * 58
      bytes[place] = carry & 0xff
      carry >>= 8
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 0xff)
  }
  const zeros = leading(text, (character) => character === '1')
  return zeros + bytes.length === length
    ? Uint8Array.from([...Array.from({ length: zeros }, () => 0), ...bytes.reverse()])
    : undefined
}

function leading<T>(values: Iterable<T>, isLeading: (value: T) => boolean): number {
  let count = 0
  for (const value of values) {
    if (!isLeading(value)) break
    count += 1
  }
  return count
}

/** Whether a text is the address of a Solana account: 32 bytes in base58. Its letter case is part of it. */
export function isSvmAddress(text: string): boolean {
  return decodeBase58(text, 32) !== undefined
}

const P = 2n ** 255n - 19n
/** −121665/121666 (RFC 8032, 5.1). */
const D =
  37_095_705_934_669_439_343_138_083_508_754_565_189_542_113_879_843_219_016_388_785_533_085_940_283_555n

/** Whether 32 bytes are a point of edwards25519, and so may be a public key. */
export function isOnCurve(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).reverse().toString('hex')
  const y = (BigInt(`0x${text}`) & (2n ** 255n - 1n)) % P
  const square = (y * y) % P
  // x² = (y² − 1) / (d·y² + 1) must have a root (Euler’s criterion); the quotient has one where the product has.
  const product = ((square - 1n + P) * (D * square + 1n)) % P
  return product === 0n || power(product, (P - 1n) / 2n) === 1n
}

function power(base: bigint, exponent: bigint): bigint {
  let [result, factor] = [1n, base % P]
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P
    factor = (factor * factor) % P
  }
  return result
}

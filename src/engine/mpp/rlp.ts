/** A value of RLP: bytes, or a list of values. */
export type Rlp = Buffer | readonly Rlp[]

interface Decoded {
  readonly value: Rlp
  /** Where the next value begins. */
  readonly end: number
}

/** Lists within lists: more than any transaction has. */
const DEEPEST = 8

/**
 * Reads one value that takes up all of the bytes, in the one encoding that is allowed for it; otherwise undefined
 * (Ethereum Yellow Paper, appendix B).
 */
export function decodeRlp(bytes: Buffer): Rlp | undefined {
  const decoded = decodeAt(bytes, 0, 0)
  return decoded?.end === bytes.length ? decoded.value : undefined
}

/** A list whose values are encoded already. */
export function encodeRlpList(encoded: Buffer): Buffer {
  if (encoded.length < 56) return Buffer.concat([Buffer.of(0xc0 + encoded.length), encoded])
  const hex = encoded.length.toString(16)
  const length = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.of(0xf7 + length.length), length, encoded])
}

function decodeAt(bytes: Buffer, at: number, depth: number): Decoded | undefined {
  const first = bytes[at]
  if (first === undefined || depth > DEEPEST) return undefined
  if (first < 0x80) return { value: bytes.subarray(at, at + 1), end: at + 1 }
  const isList = first >= 0xc0
  const content = contentAt(bytes, at, first - (isList ? 0xc0 : 0x80))
  if (content === undefined) return undefined
  const { start, end } = content
  if (isList) return decodeList(bytes, content, depth)
  // A single small byte stands for itself.
  if (end - start === 1 && (bytes[start] ?? 0) < 0x80) return undefined
  return { value: bytes.subarray(start, end), end }
}

interface Content {
  readonly start: number
  readonly end: number
}

/** `size`: the length of the content up to 55, or 55 and the length of its length. */
function contentAt(bytes: Buffer, at: number, size: number): Content | undefined {
  const digits = size <= 55 ? 0 : size - 55
  const start = at + 1 + digits
  if (digits > 4 || start > bytes.length) return undefined
  const length = digits === 0 ? size : bytes.readUIntBE(at + 1, digits)
  if (digits > 0 && (length <= 55 || bytes[at + 1] === 0)) return undefined
  return start + length > bytes.length ? undefined : { start, end: start + length }
}

function decodeList(bytes: Buffer, { start, end }: Content, depth: number): Decoded | undefined {
  const values: Rlp[] = []
  let at = start
  while (at < end) {
    const decoded = decodeAt(bytes, at, depth + 1)
    if (decoded === undefined || decoded.end > end) return undefined
    values.push(decoded.value)
    at = decoded.end
  }
  return { value: values, end }
}

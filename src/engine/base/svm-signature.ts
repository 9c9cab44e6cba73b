import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { decodeBase58, encodeBase58 } from './base58.ts'
import { parseJson } from './json.ts'

/** An account whose key this process has. */
export interface SvmAccount {
  readonly address: string
  readonly sign: (message: Uint8Array) => Uint8Array
}

/** Whether the key of an address has signed a message (Ed25519). */
export function isSignedBy(address: string, signature: Uint8Array, message: Uint8Array): boolean {
  const x = decodeBase58(address, 32)
  if (x === undefined) return false
  try {
    return verify(null, message, createPublicKey({ key: jwk(x), format: 'jwk' }), signature)
  } catch {
    // No point of the curve.
    return false
  }
}

/**
 * Opens a key pair as wallets and the Solana command line write it: 64 bytes, seed and public key, in base58 or as a JSON
 * array. Undefined when it is none, or its halves do not belong together.
 */
export function openSvmAccount(text: string): SvmAccount | undefined {
  const pair = readPair(text.trim())
  if (pair === undefined) return undefined
  const [seed, publicKey] = [pair.subarray(0, 32), pair.subarray(32)]
  try {
    const key = createPrivateKey({ key: { ...jwk(publicKey), d: base64url(seed) }, format: 'jwk' })
    const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
    const address = encodeBase58(publicKey)
    const proof = sign(null, publicKey, key)
    if (x !== base64url(publicKey) || !isSignedBy(address, proof, publicKey)) return undefined
    return { address, sign: (message) => sign(null, message, key) }
  } catch {
    return undefined
  }
}

/** The account of a random seed of 32 bytes, and its key pair of 64. */
export function createSvmAccount(seed: Uint8Array): { readonly address: string; readonly pair: Uint8Array } {
  const key = createPrivateKey({
    key: Buffer.concat([SEED_HEADER, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const publicKey = Buffer.from(x, 'base64url')
  return { address: encodeBase58(publicKey), pair: Buffer.concat([seed, publicKey]) }
}

/** PKCS #8 of an Ed25519 key, without its seed. */
const SEED_HEADER = Buffer.from('302e020100300506032b657004220420', 'hex')

function readPair(text: string): Uint8Array | undefined {
  if (!text.startsWith('[')) return decodeBase58(text, 64)
  const bytes = parseJson(text)
  if (!Array.isArray(bytes) || bytes.length !== 64) return undefined
  const numbers = bytes.filter(
    (byte): byte is number => typeof byte === 'number' && Number.isInteger(byte) && byte >= 0 && byte < 256,
  )
  return numbers.length === 64 ? Uint8Array.from(numbers) : undefined
}

function jwk(x: Uint8Array): { readonly kty: string; readonly crv: string; readonly x: string } {
  return { kty: 'OKP', crv: 'Ed25519', x: base64url(x) }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

import { keccak256 } from 'js-sha3'
import { isPrivate, pointFromScalar, recover, signRecoverable } from 'tiny-secp256k1'
import { type Address, toChecksum } from '../../base/address.ts'

/** Half the order of secp256k1: the token refuses signatures with a larger s (EIP-2), so they are refused here. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** The parts of a 65-byte signature as the token’s contract takes them; undefined when it would refuse them. */
interface SplitSignature {
  readonly r: `0x${string}`
  readonly s: `0x${string}`
  readonly v: 27 | 28
}

export function splitSignature(signature: string): SplitSignature | undefined {
  if (signature.length !== 132) return undefined
  const last = Number.parseInt(signature.slice(130), 16)
  const v = last === 0 || last === 27 ? 27 : last === 1 || last === 28 ? 28 : undefined
  const s = signature.slice(66, 130)
  if (v === undefined || BigInt(`0x${s}`) > HALF_ORDER) return undefined
  return { r: `0x${signature.slice(2, 66)}`, s: `0x${s}`, v }
}

/** The address whose key has signed `digest`, in lower case; undefined for an invalid signature. */
export function recoverSigner(digest: Uint8Array, { r, s, v }: SplitSignature): Address | undefined {
  try {
    const point = recover(digest, Buffer.from(r.slice(2) + s.slice(2), 'hex'), v === 27 ? 0 : 1, false)
    return point === null ? undefined : addressOfPoint(point)
  } catch {
    // r or s outside the curve's order: no key has signed this.
    return undefined
  }
}

/** Signs a digest: 65 bytes, with the smaller s and a v of 27 or 28. */
export function signDigest(key: `0x${string}`, digest: Uint8Array): `0x${string}` {
  const { signature, recoveryId } = signRecoverable(digest, Buffer.from(key.slice(2), 'hex'))
  return `0x${Buffer.from(signature).toString('hex')}${recoveryId === 0 ? '1b' : '1c'}`
}

/** The address of a private key; undefined when it is no key of the curve. */
export function addressOfKey(key: `0x${string}`): Address | undefined {
  const scalar = Buffer.from(key.slice(2), 'hex')
  const point = isPrivate(scalar) ? pointFromScalar(scalar, false) : null
  return point === null ? undefined : toChecksum(addressOfPoint(point))
}

function addressOfPoint(point: Uint8Array): Address {
  return `0x${keccak256(point.subarray(1)).slice(24)}`
}

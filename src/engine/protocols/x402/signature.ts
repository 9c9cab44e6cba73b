import { keccak_256 } from '@noble/hashes/sha3'
import { isPrivate, pointFromScalar, recover } from 'tiny-secp256k1'
import { toChecksum, type Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
import type { Authorization } from './payload.ts'

const TYPE =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'
const DOMAIN = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'

const TYPE_HASH = keccak_256(utf8(TYPE))
const DOMAIN_HASH = keccak_256(utf8(DOMAIN))
const PREFIX = Uint8Array.of(0x19, 0x01)

/** Half the order of secp256k1: the token refuses signatures with a larger s (EIP-2), so they are refused here. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** EIP-712 digest of an EIP-3009 authorization for the network’s token. */
export function authorizationDigest(network: Network, authorization: Authorization): Uint8Array {
  const message = keccak_256(
    Buffer.concat([
      TYPE_HASH,
      word(authorization.from),
      word(authorization.to),
      number(authorization.value),
      number(authorization.validAfter),
      number(authorization.validBefore),
      word(authorization.nonce),
    ]),
  )
  return keccak_256(Buffer.concat([PREFIX, domainSeparator(network), message]))
}

const separators = new WeakMap<Network, Uint8Array>()

/** EIP-712 domain separator of the network’s token, as the table has it. */
export function domainSeparator(network: Network): Uint8Array {
  const known = separators.get(network)
  if (known !== undefined) return known
  const { token, chainId } = network
  const separator = keccak_256(
    Buffer.concat([
      DOMAIN_HASH,
      keccak_256(utf8(token.name)),
      keccak_256(utf8(token.version)),
      number(String(chainId)),
      word(token.address),
    ]),
  )
  separators.set(network, separator)
  return separator
}

/** The parts of a 65-byte signature as the token’s contract takes them; undefined when it would refuse them. */
export interface SplitSignature {
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

/** The address whose key has signed `digest`, in lower case; undefined when nobody’s can have. */
export function recoverSigner(digest: Uint8Array, { r, s, v }: SplitSignature): Address | undefined {
  const bytes = Buffer.from(r.slice(2) + s.slice(2), 'hex')
  const key = recoverKey(digest, bytes, v === 27 ? 0 : 1)
  if (key === undefined) return undefined
  return addressOfPoint(key)
}

/** The address of a private key; undefined when it is no key of the curve. */
export function addressOfKey(key: `0x${string}`): Address | undefined {
  const scalar = Buffer.from(key.slice(2), 'hex')
  const point = isPrivate(scalar) ? pointFromScalar(scalar, false) : null
  return point === null ? undefined : toChecksum(addressOfPoint(point))
}

function addressOfPoint(point: Uint8Array): Address {
  return `0x${Buffer.from(keccak_256(point.subarray(1)).subarray(12)).toString('hex')}`
}

function recoverKey(digest: Uint8Array, bytes: Uint8Array, recovery: 0 | 1): Uint8Array | undefined {
  try {
    return recover(digest, bytes, recovery, false) ?? undefined
  } catch {
    // r or s outside the curve's order: no key has signed this.
    return undefined
  }
}

function utf8(text: string): Uint8Array {
  return Buffer.from(text, 'utf8')
}

/** A 32-byte word of a hexadecimal value, right-aligned. */
function word(hex: string): Uint8Array {
  return Buffer.from(hex.slice(2).padStart(64, '0'), 'hex')
}

function number(decimal: string): Uint8Array {
  return Buffer.from(BigInt(decimal).toString(16).padStart(64, '0'), 'hex')
}

import { keccak256 } from 'js-sha3'
import type { Address } from '../../base/address.ts'
import { word } from './abi.ts'

/** Whom a signature is for. */
interface Domain {
  readonly name: string
  readonly version?: string
  readonly chainId: number
  readonly verifyingContract: Address
}

/** Hash of bytes in hexadecimal digits. */
export function hashHex(...parts: readonly string[]): string {
  return keccak256(Buffer.from(parts.join(''), 'hex'))
}

const DOMAIN = keccak256('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)')
const DOMAIN_WITHOUT_VERSION = keccak256(
  'EIP712Domain(string name,uint256 chainId,address verifyingContract)',
)

/** The domain separator: 64 hexadecimal digits. */
export function separatorOf({ name, version, chainId, verifyingContract }: Domain): string {
  const place = [word(BigInt(chainId)), word(verifyingContract)]
  return version === undefined
    ? hashHex(DOMAIN_WITHOUT_VERSION, keccak256(name), ...place)
    : hashHex(DOMAIN, keccak256(name), keccak256(version), ...place)
}

/** What is signed: a struct under a domain, each as its hash in hexadecimal digits. */
export function typedDataDigest(separator: string, structHash: string): Uint8Array {
  return Buffer.from(hashHex('1901', separator, structHash), 'hex')
}

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

/** The domain separator: 64 hexadecimal digits. */
export function separatorOf({ name, version, chainId, verifyingContract }: Domain): string {
  const fields = version === undefined ? 'string name,' : 'string name,string version,'
  const type = `EIP712Domain(${fields}uint256 chainId,address verifyingContract)`
  const names = keccak256(name) + (version === undefined ? '' : keccak256(version))
  return hashHex(keccak256(type), names, word(BigInt(chainId)), word(verifyingContract))
}

/** What is signed: a struct under a domain, each as its hash in hexadecimal digits. */
export function typedDataDigest(separator: string, structHash: string): Uint8Array {
  return Buffer.from(hashHex('1901', separator, structHash), 'hex')
}

import { keccak256 } from 'js-sha3'
import { word } from '../abi.ts'
import { hashHex, separatorOf, typedDataDigest } from '../eip712.ts'
import type { Network } from '../../../base/networks.ts'
import type { Authorization } from './authorization.ts'

/** A word that holds 32 bytes already. */
export function bytes32(hex: `0x${string}`): string {
  return hex.slice(2)
}

/** The fields of an authorization as words of the ABI, in the order in which they are signed and sent. */
export function fieldsOf({ from, to, value, validAfter, validBefore, nonce }: Authorization): string {
  const numbers = [value, validAfter, validBefore].map((decimal) => word(BigInt(decimal)))
  return [word(from), word(to), ...numbers, bytes32(nonce)].join('')
}

const TYPE_HASH = keccak256(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)

/** EIP-712 digest of an EIP-3009 authorization for the network’s token. */
export function authorizationDigest(network: Network, authorization: Authorization): Uint8Array {
  const fields = hashHex(TYPE_HASH, fieldsOf(authorization))
  return typedDataDigest(domainSeparator(network), fields)
}

const separators = new WeakMap<Network, string>()

/** EIP-712 domain separator of the network’s token, as the table has it: 64 hexadecimal digits. */
export function domainSeparator(network: Network): string {
  const known = separators.get(network)
  if (known !== undefined) return known
  const { token, chainId } = network
  const separator = separatorOf({ ...token, chainId, verifyingContract: token.address })
  separators.set(network, separator)
  return separator
}

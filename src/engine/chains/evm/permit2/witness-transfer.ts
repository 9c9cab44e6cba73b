import { keccak256 } from 'js-sha3'
import type { Address } from '../../../base/address.ts'
import { PERMIT2 } from '../../../base/permit2.ts'
import { word } from '../abi.ts'
import { hashHex, separatorOf, typedDataDigest } from '../eip712.ts'

/** A transfer by Permit2 that only one spender can carry out. */
interface WitnessTransfer {
  readonly chainId: number
  readonly spender: Address
  readonly token: Address
  /** Decimal numbers. */
  readonly amount: string
  readonly nonce: string
  readonly deadline: string
}

const TOKEN_TYPE = 'TokenPermissions(address token,uint256 amount)'
const TOKEN_HASH = keccak256(TOKEN_TYPE)

/**
 * Makes EIP-712 digests of PermitWitnessTransferFrom with one type of witness, such as `DepositWitness(bytes32 channelId)`.
 * `members`: those of the witness, as words.
 */
export function witnessTransferDigest(
  witnessType: string,
): (transfer: WitnessTransfer, ...members: readonly string[]) => Uint8Array {
  const name = witnessType.slice(0, witnessType.indexOf('('))
  // EIP-712 sorts the types that a type refers to.
  const types = [TOKEN_TYPE, witnessType].toSorted().join('')
  const permitHash = keccak256(
    `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,${name} witness)${types}`,
  )
  const witnessHash = keccak256(witnessType)
  return ({ chainId, spender, token, amount, nonce, deadline }, ...members) => {
    const separator = separatorOf({ name: 'Permit2', chainId, verifyingContract: PERMIT2 })
    const permitted = hashHex(TOKEN_HASH, word(token), word(BigInt(amount)))
    const numbers = [nonce, deadline].map((decimal) => word(BigInt(decimal)))
    const witness = hashHex(witnessHash, ...members)
    return typedDataDigest(separator, hashHex(permitHash, permitted, word(spender), ...numbers, witness))
  }
}

import { keccak256 } from 'js-sha3'
import type { Address } from '../../../base/address.ts'
import type { Network } from '../../../base/networks.ts'
import { PERMIT2, UPTO_PROXY } from '../../../base/permit2.ts'
import { word } from '../abi.ts'
import { hashHex, separatorOf, typedDataDigest } from '../eip712.ts'

/**
 * A transfer of at most `amount`, as it is signed: PermitWitnessTransferFrom of Permit2 with the witness of the proxy.
 * Every number is a decimal string, addresses are spelt by EIP-55.
 */
export interface Permit {
  readonly from: Address
  readonly token: Address
  /** Atomic units. */
  readonly amount: string
  /** Any number that the payer has not used with Permit2 before. */
  readonly nonce: string
  /** Seconds since the epoch: the last block time at which it can be used. */
  readonly deadline: string
  readonly to: Address
  /** The only account that can have the proxy carry it out. */
  readonly facilitator: Address
  /** Seconds since the epoch. */
  readonly validAfter: string
}

/** Approves Permit2 for the amount of a permit (EIP-2612), as the payer has signed it. */
export interface Approval {
  readonly deadline: string
  readonly signature: `0x${string}`
}

/** A permit as it was signed. */
export interface SignedPermit {
  readonly permit: Permit
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
  /** Carried out before the transfer; undefined: the payer has approved Permit2 before. */
  readonly approval?: Approval | undefined
}

/** The nonce of a permit as a word: 0x and 64 digits. */
export function nonceWord({ nonce }: Pick<Permit, 'nonce'>): `0x${string}` {
  return `0x${word(BigInt(nonce))}`
}

const TOKEN_TYPE = 'TokenPermissions(address token,uint256 amount)'
const WITNESS_TYPE = 'Witness(address to,address facilitator,uint256 validAfter)'
const PERMIT_HASH = keccak256(
  `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)${TOKEN_TYPE}${WITNESS_TYPE}`,
)
const TOKEN_HASH = keccak256(TOKEN_TYPE)
const WITNESS_HASH = keccak256(WITNESS_TYPE)

/** EIP-712 digest of a permit for the proxy on a network. */
export function permitDigest(
  { chainId }: Pick<Network, 'chainId'>,
  { token, amount, nonce, deadline, to, facilitator, validAfter }: Permit,
): Uint8Array {
  const separator = separatorOf({ name: 'Permit2', chainId, verifyingContract: PERMIT2 })
  const permitted = hashHex(TOKEN_HASH, word(token), word(BigInt(amount)))
  const witness = hashHex(WITNESS_HASH, word(to), word(facilitator), word(BigInt(validAfter)))
  const numbers = [nonce, deadline].map((decimal) => word(BigInt(decimal)))
  const message = hashHex(PERMIT_HASH, permitted, word(UPTO_PROXY), ...numbers, witness)
  return typedDataDigest(separator, message)
}

import type { Address } from '../../../base/address.ts'
import type { Network } from '../../../base/networks.ts'
import { UPTO_PROXY } from '../../../base/permit2.ts'
import { word } from '../abi.ts'
import { witnessTransferDigest } from './witness-transfer.ts'

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

const digestOf = witnessTransferDigest('Witness(address to,address facilitator,uint256 validAfter)')

/** EIP-712 digest of a permit for the proxy on a network. */
export function permitDigest(
  { chainId }: Pick<Network, 'chainId'>,
  { token, amount, nonce, deadline, to, facilitator, validAfter }: Permit,
): Uint8Array {
  const transfer = { chainId, spender: UPTO_PROXY, token, amount, nonce, deadline }
  return digestOf(transfer, word(to), word(facilitator), word(BigInt(validAfter)))
}

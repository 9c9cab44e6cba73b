import type { AbiFunction } from 'viem'
import {
  bytesToHex,
  decodeErrorResult,
  encodeFunctionData,
  isHex,
  pad,
  parseAbi,
  toEventSelector,
  toFunctionSelector,
} from 'viem/utils'
import { sameAddress, type Address } from '../../address.ts'
import type { Log } from '../../chains/evm/rpc.ts'
import type { Authorization } from './payload.ts'
import { splitSignature } from './signature.ts'

/** The parts of Circle’s FiatTokenV2_2 a payment meets (EIP-20, EIP-3009). */
const ABI = parseAbi(['error Error(string reason)'])

/** Its selector is worked out once: finding one by name hashes a text at every call. */
function prepare<const Call extends AbiFunction>(abi: readonly [Call]) {
  return { abi, functionName: toFunctionSelector(abi[0]) }
}

const KEY_TRANSFER = prepare(
  parseAbi([
    'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  ]),
)
const CONTRACT_TRANSFER = prepare(
  parseAbi([
    'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  ]),
)
const STATE = prepare(
  parseAbi(['function authorizationState(address authorizer, bytes32 nonce) view returns (bool)']),
)
const BALANCE = prepare(parseAbi(['function balanceOf(address account) view returns (uint256)']))
const IS_VALID = prepare(
  parseAbi(['function isValidSignature(bytes32 digest, bytes signature) view returns (bytes4)']),
)

export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)')
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)')
const TRANSFER = toEventSelector('Transfer(address,address,uint256)')

/** An authorization as it was signed. */
export interface SignedAuthorization {
  readonly authorization: Authorization
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet stands by (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
}

/**
 * Calldata that carries out the authorization: the (v,r,s) form for the signature of a key, the bytes form for what a
 * contract wallet calls a signature, which must reach it unchanged.
 */
export function transferCall({ authorization, signature, signedBy }: SignedAuthorization): `0x${string}` {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const common = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce] as const
  const split = signedBy === 'key' ? splitSignature(signature) : undefined
  return split === undefined
    ? encodeFunctionData({ ...CONTRACT_TRANSFER, args: [...common, signature] })
    : encodeFunctionData({ ...KEY_TRANSFER, args: [...common, split.v, split.r, split.s] })
}

export function balanceCall(account: Address): `0x${string}` {
  return encodeFunctionData({ ...BALANCE, args: [account] })
}

export function stateCall(authorizer: Address, nonce: `0x${string}`): `0x${string}` {
  return encodeFunctionData({ ...STATE, args: [authorizer, nonce] })
}

/** Asks a contract wallet for its word on a signature (ERC-1271). */
export function walletCall(digest: Uint8Array, signature: `0x${string}`): `0x${string}` {
  return encodeFunctionData({ ...IS_VALID, args: [bytesToHex(digest), signature] })
}

/** The one answer that means yes, in a word of 32 bytes. */
export function walletAccepts(answer: string): boolean {
  return /^0x1626ba7e0{56}$/i.test(answer.slice(0, 66))
}

/** An address as an event topic. */
export function topic(address: Address): `0x${string}` {
  return pad(address, { size: 32 })
}

/** The sentence a contract has reverted with, from the node’s revert data. */
export function revertReason(data: string | undefined): string | undefined {
  if (data === undefined || !isHex(data)) return undefined
  try {
    const { args } = decodeErrorResult({ abi: ABI, data })
    return args?.[0]
  } catch {
    return undefined
  }
}

/** What must have happened for a payment to be settled. */
export interface Movement {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly nonce: `0x${string}`
}

/**
 * Whether these logs show the authorization used and its money moved: both, on this token, for this amount, one right
 * after the other as the token writes them. Anything looser would let the transfer of one authorization count for several
 * that are used in the same transaction, for a payer may sign another transfer under the nonce of a payment.
 */
export function showsMovement(logs: readonly Log[], movement: Movement): boolean {
  const ours = logs.filter(({ address }) => sameAddress(address, movement.token))
  return ours.some((log, at) => isUse(log, movement) && isTransfer(ours[at + 1], movement))
}

/** Topics are compared as they stand: decoding them would hash every address for its checksum. */
function isUse({ topics }: Log, { from, nonce }: Movement): boolean {
  return isSame(topics, [AUTHORIZATION_USED, topic(from), nonce])
}

function isTransfer(log: Log | undefined, { from, to, value }: Movement): boolean {
  if (log === undefined || !isSame(log.topics, [TRANSFER, topic(from), topic(to)])) return false
  return log.data.length === 66 && BigInt(log.data) === value
}

function isSame(topics: readonly string[], expected: readonly string[]): boolean {
  return (
    topics.length === expected.length &&
    topics.every((each, at) => each.toLowerCase() === expected[at]?.toLowerCase())
  )
}

import { keccak_256 } from '@noble/hashes/sha3'
import { sameAddress, type Address } from '../../address.ts'
import { TRANSFER } from '../../chains/evm/logs.ts'
import { isRevert, word, type Chain, type Log, type RpcAnswer, type Sender } from '../../chains/evm/rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { ErrorCode, Refusal } from '../../errors.ts'
import type { Settlement } from '../protocol.ts'
import type { Authorization } from './payload.ts'
import { splitSignature } from './signature.ts'

/** An authorization as it was signed. */
export interface SignedAuthorization {
  readonly authorization: Authorization
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
}

/** What must have happened on chain for a payment to be settled. */
export interface ExpectedTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  /** Atomic units. */
  readonly value: bigint
  /** Of the authorization. */
  readonly nonce: `0x${string}`
}

/** A token, and a node to ask. */
export interface TokenReader {
  readonly chain: Chain
  readonly token: Address
}

const FIELDS = 'address,address,uint256,uint256,uint256,bytes32'
/** The parts of Circle’s FiatTokenV2_2 that a payment needs (EIP-20, EIP-3009), and of contract wallets. */
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)
const TRANSFER_BY_CONTRACT = selector(`transferWithAuthorization(${FIELDS},bytes)`)
const STATE = selector('authorizationState(address,bytes32)')
const BALANCE = selector('balanceOf(address)')
const IS_VALID_SIGNATURE = selector('isValidSignature(bytes32,bytes)')
const ERROR = selector('Error(string)')

export const AUTHORIZATION_USED = `0x${hash('AuthorizationUsed(address,bytes32)')}` as const
export const AUTHORIZATION_CANCELED = `0x${hash('AuthorizationCanceled(address,bytes32)')}` as const

function selector(signature: string): string {
  return hash(signature).slice(0, 8)
}

function hash(text: string): string {
  return Buffer.from(keccak_256(Buffer.from(text, 'utf8'))).toString('hex')
}

/** A word that holds 32 bytes already. */
function bytes32(hex: `0x${string}`): string {
  return hex.slice(2)
}

/** Bytes at the end of calldata: their length, and the bytes filled up to whole words. */
function bytes(hex: `0x${string}`): string {
  const digits = hex.slice(2)
  return word(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
}

/**
 * Calldata that carries out the authorization: the (v,r,s) form for the signature of a key, the bytes form for what a
 * contract wallet calls a signature, which must reach it unchanged.
 */
export function transferCall({ authorization, signature, signedBy }: SignedAuthorization): `0x${string}` {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const numbers = [value, validAfter, validBefore].map((decimal) => word(BigInt(decimal))).join('')
  const fields = word(from) + word(to) + numbers + bytes32(nonce)
  const split = signedBy === 'key' ? splitSignature(signature) : undefined
  return split === undefined
    ? `0x${TRANSFER_BY_CONTRACT}${fields}${word(7n * 32n)}${bytes(signature)}`
    : `0x${TRANSFER_BY_KEY}${fields}${word(BigInt(split.v))}${bytes32(split.r)}${bytes32(split.s)}`
}

/** Calldata that asks whether an authorization was used or canceled. */
export function stateCall(authorizer: Address, nonce: `0x${string}`): `0x${string}` {
  return `0x${STATE}${word(authorizer)}${bytes32(nonce)}`
}

/**
 * Whether the token would carry the authorization out now, in a transaction with this gas and these fees: one call, and
 * two more to explain a refusal. `timeout`: milliseconds the node has for it.
 */
export async function simulate(
  { chain, token }: TokenReader,
  signed: SignedAuthorization,
  sender: Sender | undefined,
  timeout: number,
): Promise<Refusal | undefined> {
  const answer = await chain.call(token, transferCall(signed), sender, timeout)
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'refused' && /insufficient funds/i.test(answer.message)) return SENDER_UNFUNDED
  if (!isRevert(answer)) return NODE_UNREACHABLE
  const code = reasonCode(`${revertReason(answer.data) ?? ''} ${answer.message}`)
  const { from, nonce, value } = signed.authorization
  return {
    code: code ?? (await diagnose(chain, { token, from, nonce, value: BigInt(value) })),
    detail: 'the token would not carry out this transfer',
  }
}

export const NODE_UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}

/** The token’s own words (FiatTokenV2_2), as codes. */
const REASONS: readonly [RegExp, ErrorCode][] = [
  [/authorization is used or canceled/i, 'invalid_exact_evm_nonce_already_used'],
  [/exceeds balance/i, 'invalid_exact_evm_insufficient_balance'],
  [/invalid signature/i, 'invalid_exact_evm_signature'],
  [/authorization is expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/authorization is not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
]

function reasonCode(text: string): ErrorCode | undefined {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1]
}

/** The sentence a contract has reverted with, from the node’s revert data. */
function revertReason(data: string | undefined): string | undefined {
  return data?.slice(2, 10).toLowerCase() === ERROR ? decodeText(data.slice(10)) : undefined
}

/** A string as the ABI encodes a result of one: where it begins, its length, its bytes. Takes hexadecimal digits. */
export function decodeText(digits: string): string | undefined {
  const encoded = Buffer.from(digits, 'hex')
  if (encoded.length < 64) return undefined
  const length = Number(BigInt(`0x${encoded.toString('hex', 32, 64)}`))
  return length > encoded.length - 64 ? undefined : encoded.toString('utf8', 64, 64 + length)
}

async function diagnose(chain: Chain, expected: Omit<ExpectedTransfer, 'to'>): Promise<ErrorCode> {
  const [balance, used] = await Promise.all([
    balanceOf({ chain, token: expected.token }, expected.from),
    isUsed(chain, expected),
  ])
  if (used === true) return 'invalid_exact_evm_nonce_already_used'
  if (balance !== undefined && balance < expected.value) return 'invalid_exact_evm_insufficient_balance'
  return 'invalid_exact_evm_transaction_simulation_failed'
}

/** What an account holds of the token, in atomic units; undefined when the node does not say. */
export async function balanceOf(
  { chain, token }: TokenReader,
  account: Address,
): Promise<bigint | undefined> {
  return numberIn(await chain.call(token, `0x${BALANCE}${word(account)}`))
}

/** Whether the authorization was used or canceled, now or up to a block; undefined when the node does not say. */
export async function isUsed(
  chain: Chain,
  { token, from, nonce }: Pick<ExpectedTransfer, 'token' | 'from' | 'nonce'>,
  block?: bigint,
): Promise<boolean | undefined> {
  const data = stateCall(from, nonce)
  const answer = await (block === undefined ? chain.call(token, data) : chain.callAt(block, token, data))
  const state = numberIn(answer)
  return state === undefined ? undefined : state === 1n
}

function numberIn(answer: RpcAnswer<`0x${string}`>): bigint | undefined {
  return answer.kind === 'result' && answer.result.length === 66 ? BigInt(answer.result) : undefined
}

/** Whether a contract wallet accepts a signature (ERC-1271); an address without code accepts none. */
export async function verifyErc1271(
  chain: Chain,
  wallet: Address,
  digest: Uint8Array,
  signature: `0x${string}`,
): Promise<Refusal | undefined> {
  const head = Buffer.from(digest).toString('hex') + word(64n)
  const answer = await chain.call(wallet, `0x${IS_VALID_SIGNATURE}${head}${bytes(signature)}`)
  if (answer.kind === 'result' && VALID.test(answer.result.slice(0, 66))) return undefined
  if (answer.kind !== 'result' && !isRevert(answer)) return NODE_UNREACHABLE
  const isWallet = answer.kind !== 'result' || answer.result !== '0x'
  return { code: 'invalid_exact_evm_signature', detail: isWallet ? WRONG_WALLET : WRONG_KEY }
}

/** The one answer that means yes, in a word of 32 bytes. */
const VALID = /^0x1626ba7e0{56}$/i
const WRONG_KEY = 'the signature is not the one of authorization.from for this token and chain'
const WRONG_WALLET = 'the paying contract does not accept this signature'

/**
 * Whether these logs show the authorization used and its money moved: both, on this token, for this amount, one right
 * after the other as the token writes them. Anything looser would let the transfer of one authorization count for several
 * that are used in the same transaction, for a payer may sign another transfer under the nonce of a payment.
 */
export function containsTransfer(logs: readonly Log[], expected: ExpectedTransfer): boolean {
  const ours = logs.filter(({ address }) => sameAddress(address, expected.token))
  return ours.some((log, place) => isUse(log, expected) && isTransfer(ours[place + 1], expected))
}

/** Topics are compared as they stand: decoding them would hash every address for its checksum. */
function isUse({ topics }: Log, { from, nonce }: ExpectedTransfer): boolean {
  return isSame(topics, [AUTHORIZATION_USED, `0x${word(from)}`, nonce])
}

function isTransfer(log: Log | undefined, { from, to, value }: ExpectedTransfer): boolean {
  if (log === undefined || !isSame(log.topics, [TRANSFER, `0x${word(from)}`, `0x${word(to)}`])) return false
  return log.data.length === 66 && BigInt(log.data) === value
}

function isSame(topics: readonly string[], expected: readonly string[]): boolean {
  return (
    topics.length === expected.length &&
    topics.every((each, place) => each.toLowerCase() === expected[place]?.toLowerCase())
  )
}

/** The proof that a payment was carried out. */
export function settled(
  { networkId }: { readonly networkId: string },
  { from, value }: ExpectedTransfer,
  transaction: string,
): Settlement {
  const receipt = { transaction, network: networkId, payer: from, amount: value.toString() }
  return { kind: 'settled', receipt }
}

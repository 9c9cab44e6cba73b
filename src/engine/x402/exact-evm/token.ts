import type { Address } from '../../base/address.ts'
import { word, type Chain } from '../../chains/evm/chain.ts'
import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { isRevert, type Refused, type RpcAnswer } from '../../chains/evm/json-rpc.ts'
import { selector, decodeText, bytes } from '../../chains/evm/abi.ts'

/** What must have happened on chain for a payment to be settled. */
export interface ExpectedTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  /** Atomic units. */
  readonly value: bigint
  /** Nonce of the authorization. */
  readonly nonce: `0x${string}`
}

/** A token, and a node to ask. */
export interface TokenReader {
  readonly chain: Chain
  readonly token: Address
}

const STATE = selector('authorizationState(address,bytes32)')
const BALANCE = selector('balanceOf(address)')
const IS_VALID_SIGNATURE = selector('isValidSignature(bytes32,bytes)')
const ERROR = selector('Error(string)')

/** Calldata that asks whether an authorization was used or canceled. */
export function stateCall(authorizer: Address, nonce: `0x${string}`): `0x${string}` {
  return `0x${STATE}${word(authorizer)}${nonce.slice(2)}`
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

/** Why the token has reverted: from what it says, otherwise by two questions. */
export async function explainRevert(
  chain: Chain,
  expected: Omit<ExpectedTransfer, 'to'>,
  { data, message }: Refused,
): Promise<ErrorCode> {
  return reasonCode(`${revertReason(data) ?? ''} ${message}`) ?? diagnose(chain, expected)
}

function reasonCode(text: string): ErrorCode | undefined {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1]
}

/** The sentence a contract has reverted with, from the node’s revert data. */
function revertReason(data: string | undefined): string | undefined {
  return data?.slice(2, 10).toLowerCase() === ERROR ? decodeText(data.slice(10)) : undefined
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

/** What an account holds of the token, in atomic units, now or at a block; undefined when the node does not say. */
export async function balanceOf(
  { chain, token }: TokenReader,
  account: Address,
  block?: bigint,
): Promise<bigint | undefined> {
  return numberIn(await chain.read(token, `0x${BALANCE}${word(account)}`, block))
}

/** Whether the authorization was used or canceled, now or up to a block; undefined when the node does not say. */
export async function isUsed(
  chain: Chain,
  { token, from, nonce }: Pick<ExpectedTransfer, 'token' | 'from' | 'nonce'>,
  block?: bigint,
): Promise<boolean | undefined> {
  const data = stateCall(from, nonce)
  const answer = await chain.read(token, data, block)
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

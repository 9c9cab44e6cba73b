import type { Address } from '../../address.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Refusal } from '../protocol.ts'
import { isRevert, type Chain, type RpcAnswer, type Sender } from '../../chains/evm/rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import {
  balanceCall,
  revertReason,
  stateCall,
  transferCall,
  walletAccepts,
  walletCall,
  type Movement,
  type SignedAuthorization,
} from './token.ts'

const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}

/** A token, and a node to ask. */
export interface TokenReader {
  readonly chain: Chain
  readonly token: Address
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
  if (!isRevert(answer)) return UNREACHABLE
  const code = reasonCode(`${revertReason(answer.data) ?? ''} ${answer.message}`)
  const { from, nonce, value } = signed.authorization
  return {
    code: code ?? (await diagnose(chain, { token, from, nonce, value: BigInt(value) })),
    detail: 'the token would not carry out this transfer',
  }
}

/** The token's own words (FiatTokenV2_2), as codes. */
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

async function diagnose(chain: Chain, movement: Omit<Movement, 'to'>): Promise<ErrorCode> {
  const [balance, used] = await Promise.all([
    balanceOf({ chain, token: movement.token }, movement.from),
    isUsed(chain, movement),
  ])
  if (used === true) return 'invalid_exact_evm_nonce_already_used'
  if (balance !== undefined && balance < movement.value) return 'invalid_exact_evm_insufficient_balance'
  return 'invalid_exact_evm_transaction_simulation_failed'
}

/** What an account holds of the token, in atomic units; undefined when it cannot be asked. */
export async function balanceOf(
  { chain, token }: TokenReader,
  account: Address,
): Promise<bigint | undefined> {
  const answer = await chain.call(token, balanceCall(account))
  return isWord(answer) ? BigInt(answer.result) : undefined
}

/** Whether the token holds this authorization for used or canceled, now or up to a block; undefined when it cannot be asked. */
export async function isUsed(
  chain: Chain,
  { token, from, nonce }: Pick<Movement, 'token' | 'from' | 'nonce'>,
  block?: bigint,
): Promise<boolean | undefined> {
  const data = stateCall(from, nonce)
  const answer = await (block === undefined ? chain.call(token, data) : chain.callAt(block, token, data))
  return isWord(answer) ? BigInt(answer.result) === 1n : undefined
}

function isWord(answer: RpcAnswer<`0x${string}`>): answer is { kind: 'result'; result: `0x${string}` } {
  return answer.kind === 'result' && answer.result.length === 66
}

/** Whether a contract wallet stands by a signature (ERC-1271); an address without code stands by none. */
export async function askWallet(
  { chain }: Pick<TokenReader, 'chain'>,
  wallet: Address,
  digest: Uint8Array,
  signature: `0x${string}`,
): Promise<Refusal | undefined> {
  const answer = await chain.call(wallet, walletCall(digest, signature))
  if (answer.kind === 'result' && walletAccepts(answer.result)) return undefined
  if (answer.kind !== 'result' && !isRevert(answer)) return UNREACHABLE
  const nobody = answer.kind === 'result' && answer.result === '0x'
  return { code: 'invalid_exact_evm_signature', detail: nobody ? WRONG_KEY : WRONG_WALLET }
}

const WRONG_KEY = 'the signature is not the one of authorization.from for this token and chain'
const WRONG_WALLET = 'the paying contract does not accept this signature'

import type { Address } from '../../../base/address.ts'
import { selector, word } from '../abi.ts'
import type { Chain } from '../chain.ts'
import type { RpcAnswer } from '../json-rpc.ts'

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
const ALLOWANCE = selector('allowance(address,address)')
const BALANCE = selector('balanceOf(address)')

/** Calldata that asks whether an authorization was used or canceled. */
export function stateCall(authorizer: Address, nonce: `0x${string}`): `0x${string}` {
  return `0x${STATE}${word(authorizer)}${nonce.slice(2)}`
}

/** What an account holds of the token, in atomic units, now or at a block; undefined when the node does not say. */
export async function balanceOf(
  { chain, token }: TokenReader,
  account: Address,
  block?: bigint,
): Promise<bigint | undefined> {
  return numberIn(await chain.read(token, `0x${BALANCE}${word(account)}`, block))
}

/** What a spender may move of the token for an account, in atomic units, now or at a block; undefined when the node does not say. */
export async function allowanceOf(
  { chain, token }: TokenReader,
  account: Address,
  spender: Address,
  block?: bigint,
): Promise<bigint | undefined> {
  return numberIn(await chain.read(token, `0x${ALLOWANCE}${word(account)}${word(spender)}`, block))
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

import { word, type Sender } from '../../chains/evm/chain.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { Refusal } from '../../base/errors.ts'
import { selector, bytes } from '../../chains/evm/abi.ts'
import { fieldsOf, bytes32 } from './eip712.ts'
import type { Authorization } from './authorization.ts'
import { splitSignature } from '../../chains/evm/signature.ts'
import { type TokenReader, NODE_UNREACHABLE, explainRevert, type ExpectedTransfer } from './token.ts'

/** An authorization as it was signed. */
export interface SignedAuthorization {
  readonly authorization: Authorization
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
}

const FIELDS = 'address,address,uint256,uint256,uint256,bytes32'

/** The parts of Circle’s FiatTokenV2_2 that a payment needs (EIP-3009). */
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)

const TRANSFER_BY_CONTRACT = selector(`transferWithAuthorization(${FIELDS},bytes)`)

/**
 * Calldata of the transfer: the (v,r,s) form for the signature of a key, and the bytes form for that of a contract
 * wallet, which must receive it unchanged.
 */
export function transferCall({ authorization, signature, signedBy }: SignedAuthorization): `0x${string}` {
  const fields = fieldsOf(authorization)
  const split = signedBy === 'key' ? splitSignature(signature) : undefined
  return split === undefined
    ? `0x${TRANSFER_BY_CONTRACT}${fields}${word(7n * 32n)}${bytes(signature)}`
    : `0x${TRANSFER_BY_KEY}${fields}${word(BigInt(split.v))}${bytes32(split.r)}${bytes32(split.s)}`
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
  const { from, nonce, value } = signed.authorization
  return {
    code: await explainRevert(chain, { token, from, nonce, value: BigInt(value) }, answer),
    detail: 'the token would not carry out this transfer',
  }
}

/**
 * The signed authorization within the bytes of a transaction that carries it out, alone or together with others: its call
 * stands in them unchanged.
 */
export function findSigned(raw: string, expected: ExpectedTransfer): SignedAuthorization | undefined {
  const { from, to, value, nonce } = expected
  const fields = `${word(from)}${word(to)}${word(value)}([0-9a-f]{64})([0-9a-f]{64})${bytes32(nonce)}`
  const call = `(?:${TRANSFER_BY_KEY}${fields}0{62}(1b|1c)|${TRANSFER_BY_CONTRACT}${fields}${word(7n * 32n)})([0-9a-f]*)`
  const match = new RegExp(call.toLowerCase()).exec(raw.toLowerCase())
  if (match === null) return undefined
  const [, keyAfter, keyBefore, v, contractAfter, contractBefore, rest = ''] = match
  const decimal = (digits = '0'): string => BigInt(`0x${digits}`).toString()
  const authorization = {
    from,
    to,
    value: value.toString(),
    validAfter: decimal(keyAfter ?? contractAfter),
    validBefore: decimal(keyBefore ?? contractBefore),
    nonce,
  }
  if (v !== undefined) return { authorization, signature: `0x${rest.slice(0, 128)}${v}`, signedBy: 'key' }
  const size = Number.parseInt(rest.slice(0, 64), 16)
  return { authorization, signature: `0x${rest.slice(64, 64 + 2 * size)}`, signedBy: 'contract' }
}

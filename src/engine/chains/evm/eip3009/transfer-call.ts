import { bytes, selector, word } from '../abi.ts'
import { splitSignature } from '../signature.ts'
import type { SignedAuthorization } from './authorization.ts'
import { bytes32, fieldsOf } from './digest.ts'
import type { ExpectedTransfer } from './token-state.ts'

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

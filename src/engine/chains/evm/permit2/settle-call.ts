import { toChecksum, type Address } from '../../../base/address.ts'
import { bytes, selector, word } from '../abi.ts'
import { splitSignature } from '../signature.ts'
import type { Permit, SignedPermit } from './permit.ts'

const PERMIT = '((address,uint256),uint256,uint256)'
const REST = `${PERMIT},uint256,address,(address,address,uint256),bytes`

/** The functions of the proxy of scheme upto. */
const SETTLE = selector(`settle(${REST})`)
const SETTLE_WITH_PERMIT = selector(`settleWithPermit((uint256,uint256,bytes32,bytes32,uint8),${REST})`)

/** Words before the bytes of the signature: what is fixed of the permit, and their place. */
const WORDS = 10
const WORDS_OF_APPROVAL = 5

/** Calldata that has the proxy move `amount`, at most that of the permit. */
export function settleCall(signed: SignedPermit, amount: bigint): `0x${string}` {
  const { permit, signature, signedBy, approval } = signed
  const fields = fieldsOf(permit, amount)
  // Permit2 takes 27 or 28 as the last byte of a key’s signature, and a contract wallet gets its own unchanged.
  const split = signedBy === 'key' ? splitSignature(signature) : undefined
  const sent: `0x${string}` =
    split === undefined ? signature : `${split.r}${split.s.slice(2)}${split.v.toString(16)}`
  if (approval === undefined) return `0x${SETTLE}${fields}${word(BigInt(WORDS * 32))}${bytes(sent)}`
  const grant = approvalWords(permit, approval.deadline, approval.signature)
  const place = word(BigInt((WORDS + WORDS_OF_APPROVAL) * 32))
  return `0x${SETTLE_WITH_PERMIT}${grant}${fields}${place}${bytes(sent)}`
}

function fieldsOf(
  { from, token, amount: most, nonce, deadline, to, facilitator, validAfter }: Permit,
  amount: bigint,
): string {
  const numbers = [most, nonce, deadline].map((decimal) => word(BigInt(decimal)))
  const witness = [word(to), word(facilitator), word(BigInt(validAfter))]
  return [word(token), ...numbers, word(amount), word(from), ...witness].join('')
}

function approvalWords({ amount }: Permit, deadline: string, signature: `0x${string}`): string {
  const last = signature.slice(130, 132)
  return [
    word(BigInt(amount)),
    word(BigInt(deadline)),
    signature.slice(2, 66),
    signature.slice(66, 130),
    word(BigInt(`0x${last}`)),
  ].join('')
}

/** What a call of the proxy moves. */
interface SettleCall {
  readonly signed: SignedPermit
  /** Atomic units. */
  readonly amount: bigint
}

/**
 * The first call of the proxy within calldata, or within the bytes of a transaction; undefined when there is none.
 * `signedBy` is `contract`, whose bytes are sent unchanged: those of a key are in the form that Permit2 takes already.
 */
export function findSettleCall(raw: string): SettleCall | undefined {
  const digits = raw.slice(2).toLowerCase()
  const match = CALL.exec(digits)
  if (match === null) return undefined
  const isApproving = match[1] === SETTLE_WITH_PERMIT
  const from = match.index + 8
  const wordAt = (place: number): string => digits.slice(from + place * 64, from + (place + 1) * 64)
  const first = isApproving ? WORDS_OF_APPROVAL : 0
  if (digits.length < from + (first + WORDS + 1) * 64) return undefined
  const number = (place: number): string => BigInt(`0x${wordAt(first + place)}`).toString()
  const address = (place: number): Address => toChecksum(`0x${wordAt(first + place).slice(24)}`)
  const permit: Permit = {
    token: address(0),
    amount: number(1),
    nonce: number(2),
    deadline: number(3),
    from: address(5),
    to: address(6),
    facilitator: address(7),
    validAfter: number(8),
  }
  const size = Number(BigInt(`0x${wordAt(first + WORDS)}`))
  const start = from + (first + WORDS + 1) * 64
  const approval = isApproving
    ? {
        deadline: BigInt(`0x${wordAt(1)}`).toString(),
        signature: `0x${wordAt(2)}${wordAt(3)}${wordAt(4).slice(62)}` as const,
      }
    : undefined
  return {
    signed: {
      permit,
      signature: `0x${digits.slice(start, start + 2 * size)}`,
      signedBy: 'contract',
      approval,
    },
    amount: BigInt(`0x${wordAt(first + 4)}`),
  }
}

/** A selector whose words follow: the first of an address, or of the value of an approval. */
const CALL = new RegExp(`(${SETTLE}(?=0{24})|${SETTLE_WITH_PERMIT})`)

import { keccak256 } from 'js-sha3'
import { toChecksum, type Address } from '../base/address.ts'
import { recoverSigner, splitSignature } from '../chains/evm/signature.ts'
import { isBoundMemo } from './challenge-memo.ts'
import { decodeRlp, encodeRlpList, type Rlp } from './rlp.ts'
import type { Demand, SignedTransfer } from './transfer-validator.ts'

/** `transferWithMemo(address,uint256,bytes32)` of TIP-20. */
const TRANSFER_WITH_MEMO = '95777d59'
const TYPE = 0x76
/** Bytes of a signature by a key of secp256k1, and those that RLP puts before it. */
const SIGNATURE = 65
const SIGNATURE_HEADER = 2
/** More than any time in seconds, and less than what a number can hold exactly. */
const MOST_SECONDS = 2n ** 40n

/**
 * Reads the usual payment: a Tempo transaction (type 0x76) with one call, the transfer that was demanded, which its
 * payer pays the fee for and has signed with the account's own key of secp256k1. Undefined for every other transaction,
 * which may be valid too: passkeys, access keys and further calls are read with viem and mppx.
 *
 * Fields: https://docs.tempo.xyz/protocol/transactions/spec-tempo-transaction, in the order in which they are signed.
 */
export function readUsualTransfer(sent: `0x${string}`, demand: Demand): SignedTransfer | undefined {
  const bytes = Buffer.from(sent.slice(2), 'hex')
  if (bytes[0] !== TYPE) return undefined
  const fields = decodeRlp(bytes.subarray(1))
  if (fields === undefined || Buffer.isBuffer(fields) || fields.length !== 14) return undefined
  const [
    chainId,
    tip,
    most,
    gas,
    calls,
    accesses,
    nonceKey,
    nonce,
    before,
    after,
    fee,
    sponsor,
    others,
    proof,
  ] = fields
  if (!isEmptyList(accesses) || !isEmptyList(others) || !isNothing(sponsor) || !isNothing(after))
    return undefined
  const numbers = {
    chainId: numberOf(chainId),
    maxPriorityFeePerGas: numberOf(tip),
    maxFeePerGas: numberOf(most),
    gas: numberOf(gas),
    nonceKey: numberOf(nonceKey),
    nonce: numberOf(nonce),
    validBefore: numberOf(before),
  }
  if (!allKnown(numbers)) return undefined
  const { maxPriorityFeePerGas, maxFeePerGas, validBefore } = numbers
  if (numbers.chainId !== BigInt(demand.chainId) || maxPriorityFeePerGas > maxFeePerGas) return undefined
  if (validBefore === 0n || validBefore > MOST_SECONDS || numbers.nonce > MOST_SECONDS) return undefined
  const call = callOf(calls, demand)
  const feeToken = isNothing(fee) ? undefined : addressIn(fee)
  if (call === undefined || (feeToken === undefined && !isNothing(fee))) return undefined
  const payer = signerOf(bytes, proof)
  if (payer === undefined) return undefined
  const raw: `0x${string}` = `0x${bytes.toString('hex')}`
  return {
    raw,
    hash: `0x${keccak256(bytes)}`,
    payer,
    validBefore: Number(validBefore),
    nonce: numbers.nonce,
    nonceKey: numbers.nonceKey,
    gas: numbers.gas,
    maxFeePerGas,
    feeToken,
    accessKey: undefined,
    call,
    trial: {
      type: '0x76',
      from: payer,
      chainId: hexOf(numbers.chainId),
      gas: hexOf(numbers.gas),
      maxFeePerGas: hexOf(maxFeePerGas),
      maxPriorityFeePerGas: hexOf(maxPriorityFeePerGas),
      nonce: hexOf(numbers.nonce),
      nonceKey: hexOf(numbers.nonceKey),
      validBefore: hexOf(validBefore),
      calls: [{ to: toChecksum(demand.currency), value: '0x0', data: call }],
      ...(feeToken !== undefined && { feeToken }),
    },
  }
}

/** The calldata of the only call, when it is the transfer that was demanded. */
function callOf(
  calls: Rlp | undefined,
  { currency, recipient, amount, realm, challengeId }: Demand,
): `0x${string}` | undefined {
  if (calls === undefined || Buffer.isBuffer(calls) || calls.length !== 1) return undefined
  const [call] = calls
  if (call === undefined || Buffer.isBuffer(call) || call.length !== 3) return undefined
  const [to, value, data] = call
  if (addressIn(to)?.toLowerCase() !== currency.toLowerCase() || !isNothing(value)) return undefined
  if (data === undefined || !Buffer.isBuffer(data)) return undefined
  const words = [recipient.slice(2).toLowerCase(), BigInt(amount).toString(16)].map((each) =>
    each.padStart(64, '0'),
  )
  const hex = data.toString('hex')
  const start = `${TRANSFER_WITH_MEMO}${words.join('')}`
  if (data.length !== 100 || !hex.startsWith(start)) return undefined
  return isBoundMemo(`0x${hex.slice(start.length)}`, realm, challengeId) ? `0x${hex}` : undefined
}

/** The account whose key has signed; undefined for another kind of signature, or another spelling of it. */
function signerOf(bytes: Buffer, proof: Rlp | undefined): Address | undefined {
  if (!Buffer.isBuffer(proof) || proof.length !== SIGNATURE) return undefined
  const last = proof[SIGNATURE - 1]
  const split = last === 27 || last === 28 ? splitSignature(`0x${proof.toString('hex')}`) : undefined
  if (split === undefined) return undefined
  // The signature is the last field: the others are signed as they are encoded.
  const signed = bytes.subarray(startOfFields(bytes), bytes.length - SIGNATURE - SIGNATURE_HEADER)
  const digest = Buffer.from(keccak256(Buffer.concat([Buffer.of(TYPE), encodeRlpList(signed)])), 'hex')
  const signer = recoverSigner(digest, split)
  return signer === undefined ? undefined : toChecksum(signer)
}

/** After the type and the header of a list that is longer than 55 bytes. */
function startOfFields(bytes: Buffer): number {
  return 2 + Math.max(0, (bytes[1] ?? 0) - 0xf7)
}

type Numbers<Name extends string> = Readonly<Record<Name, bigint>>

function allKnown<Name extends string>(
  numbers: Readonly<Record<Name, bigint | undefined>>,
): numbers is Numbers<Name> {
  return Object.values(numbers).every((each) => each !== undefined)
}

/** Zero is written as nothing, and no number begins with a zero. */
function numberOf(value: Rlp | undefined): bigint | undefined {
  if (value === undefined || !Buffer.isBuffer(value) || value[0] === 0 || value.length > 32) return undefined
  return value.length === 0 ? 0n : BigInt(`0x${value.toString('hex')}`)
}

function addressIn(value: Rlp | undefined): Address | undefined {
  return Buffer.isBuffer(value) && value.length === 20 ? toChecksum(`0x${value.toString('hex')}`) : undefined
}

function isNothing(value: Rlp | undefined): boolean {
  return Buffer.isBuffer(value) && value.length === 0
}

function isEmptyList(value: Rlp | undefined): boolean {
  return value !== undefined && !Buffer.isBuffer(value) && value.length === 0
}

function hexOf(value: bigint): string {
  return `0x${value.toString(16)}`
}

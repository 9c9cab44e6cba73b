import type { Address } from '../../base/address.ts'
import { bytes, selector, word } from '../../chains/evm/abi.ts'
import type { Approval } from '../../chains/evm/permit2/permit.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'
import type { ChannelMirror } from './channel-mirror.ts'
import { CHANNELS, DEPOSIT_COLLECTOR, PERMIT_COLLECTOR } from '../../base/channel-contracts.ts'
import { splitSignature } from '../../chains/evm/signature.ts'
import {
  wordsOf,
  type DepositAuthorization,
  type PermitAuthorization,
  type TransferAuthorization,
} from './typed-data.ts'

const CONFIG = '(address,address,address,address,address,uint40,bytes32)'
const DEPOSIT = selector(`deposit(${CONFIG},uint128,address,bytes)`)
const CLAIM = selector(`claimWithSignature(((${CONFIG},uint128),bytes,uint128)[],bytes)`)
const SETTLE = selector('settle(address,address)')
const REFUND = selector(`refundWithSignature(${CONFIG},uint128,uint256,bytes)`)
const MULTICALL = selector('multicall(bytes[])')
const CHANNEL = selector('channels(bytes32)')
const WITHDRAWAL = selector('pendingWithdrawals(bytes32)')
const REFUND_NONCE = selector('refundNonce(bytes32)')
const RECEIVER = selector('receivers(address,address)')

/** Bytes of one word. */
const WORD = 32

/** One channel of a claim: everything up to `total` becomes the receiver’s. */
export interface ClaimRow {
  readonly config: ChannelConfig
  readonly ceiling: bigint
  readonly signature: `0x${string}`
  readonly total: bigint
}

export function depositCall(config: ChannelConfig, deposit: DepositAuthorization): `0x${string}` {
  const [collector, data] =
    deposit.method === 'permit2'
      ? [PERMIT_COLLECTOR, permitData(deposit)]
      : [DEPOSIT_COLLECTOR, transferData(deposit)]
  // A channel takes seven words; amount, collector and the place of the data follow it.
  const head = [wordsOf(config), word(BigInt(deposit.amount)), word(collector), offset(10)]
  return `0x${DEPOSIT}${head.join('')}${bytes(data)}`
}

function transferData({ validAfter, validBefore, salt, signature }: TransferAuthorization): `0x${string}` {
  const numbers = [validAfter, validBefore, BigInt(salt)].map((each) => word(BigInt(each)))
  return `0x${[...numbers, offset(4)].join('')}${bytes(signature)}`
}

function permitData({ amount, nonce, deadline, signature, approval }: PermitAuthorization): `0x${string}` {
  // Permit2 takes 27 or 28 as the last byte.
  const split = splitSignature(signature)
  const sent = bytes(split === undefined ? signature : `${split.r}${split.s.slice(2)}${split.v.toString(16)}`)
  const numbers = [nonce, deadline].map((each) => word(BigInt(each)))
  const approvalData: `0x${string}` = approval === undefined ? '0x' : `0x${approvalWords(amount, approval)}`
  const second = word(BigInt(4 * WORD + sent.length / 2))
  return `0x${numbers.join('')}${offset(4)}${second}${sent}${bytes(approvalData)}`
}

function approvalWords(amount: string, { deadline, signature }: Approval): string {
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)]
  return [word(BigInt(amount)), word(BigInt(deadline)), word(BigInt(`0x${v}`)), r, s].join('')
}

export function claimCall(rows: readonly ClaimRow[], signature: `0x${string}`): `0x${string}` {
  const list = dynamicList(rows.map(encodeRow))
  return `0x${CLAIM}${offset(2)}${word(BigInt(2 * WORD + list.length / 2))}${list}${bytes(signature)}`
}

function encodeRow({ config, ceiling, signature, total }: ClaimRow): string {
  // The channel and its ceiling take eight words; the place of the signature and the total follow them.
  return `${wordsOf(config)}${word(ceiling)}${offset(10)}${word(total)}${bytes(signature)}`
}

export function settleCall(receiver: Address, token: Address): `0x${string}` {
  return `0x${SETTLE}${word(receiver)}${word(token)}`
}

export function refundCall(
  config: ChannelConfig,
  amount: bigint,
  nonce: bigint,
  signature: `0x${string}`,
): `0x${string}` {
  return `0x${REFUND}${wordsOf(config)}${word(amount)}${word(nonce)}${offset(10)}${bytes(signature)}`
}

/** Several calls in one transaction: all succeed, or none. */
export function together(calls: readonly `0x${string}`[]): `0x${string}` {
  const [only] = calls
  if (only !== undefined && calls.length === 1) return only
  return `0x${MULTICALL}${offset(1)}${dynamicList(calls.map(bytes))}`
}

function offset(words: number): string {
  return word(BigInt(words * WORD))
}

/** A list of values of any length: their number, their places, and then each. */
function dynamicList(items: readonly string[]): string {
  let at = items.length * WORD
  const places = items.map((item) => {
    const place = word(BigInt(at))
    at += item.length / 2
    return place
  })
  return word(BigInt(items.length)) + places.join('') + items.join('')
}

/** A channel as the chain has it; undefined when the node does not say. `now`: milliseconds since the epoch. */
export async function readChannel(
  chain: Chain,
  id: ChannelId,
  now: number,
): Promise<ChannelMirror | undefined> {
  const ask = async (question: string): Promise<readonly bigint[] | undefined> => {
    const answer = await chain.read(CHANNELS, `0x${question}${id.slice(2)}`)
    return answer.kind === 'result' ? numbersIn(answer.result) : undefined
  }
  const [channel, withdrawal, nonce] = await Promise.all([CHANNEL, WITHDRAWAL, REFUND_NONCE].map(ask))
  const [balance, claimed] = channel ?? []
  const [withdrawing, withdrawalAt] = withdrawal ?? []
  const [refundNonce] = nonce ?? []
  if (balance === undefined || claimed === undefined || refundNonce === undefined) return undefined
  if (withdrawing === undefined || withdrawalAt === undefined) return undefined
  return {
    balance: balance.toString(),
    claimed: claimed.toString(),
    withdrawing: withdrawing.toString(),
    withdrawalAt: Number(withdrawalAt),
    refundNonce: refundNonce.toString(),
    readAt: now,
  }
}

/** What a receiver has claimed and not been paid, in atomic units; undefined when the node does not say. */
export async function readUnsettled(
  chain: Chain,
  receiver: Address,
  token: Address,
): Promise<bigint | undefined> {
  const answer = await chain.read(CHANNELS, `0x${RECEIVER}${word(receiver)}${word(token)}`)
  const [claimed, settled] = answer.kind === 'result' ? (numbersIn(answer.result) ?? []) : []
  return claimed === undefined || settled === undefined ? undefined : claimed - settled
}

/** The words of an answer as numbers; undefined when it is none, as of an address without code. */
function numbersIn(answer: string): readonly bigint[] | undefined {
  const words = answer.slice(2).match(/[0-9a-fA-F]{64}/g)
  return words === null ? undefined : words.map((digits) => BigInt(`0x${digits}`))
}

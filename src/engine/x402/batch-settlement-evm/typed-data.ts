import { keccak256 } from 'js-sha3'
import type { Network } from '../../base/networks.ts'
import { word } from '../../chains/evm/abi.ts'
import { hashHex, separatorOf, typedDataDigest } from '../../chains/evm/eip712.ts'
import { domainSeparator } from '../../chains/evm/eip3009/digest.ts'
import { witnessTransferDigest } from '../../chains/evm/permit2/witness-transfer.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'
import { CHANNELS, DEPOSIT_COLLECTOR, PERMIT_COLLECTOR } from '../../base/channel-contracts.ts'
import type { SentApproval } from '../gas-sponsoring.ts'

/** What a payer signs so that a deposit is taken: the rest follows from the channel. */
export type DepositAuthorization = TransferAuthorization | PermitAuthorization

/** A deposit by EIP-3009, whose nonce names the channel. */
export interface TransferAuthorization {
  /** Deposits that earlier versions have recorded do not say it. */
  readonly method?: 'eip3009'
  /** Atomic units. */
  readonly amount: string
  /** Seconds since the epoch. */
  readonly validAfter: string
  readonly validBefore: string
  /** 32 bytes. */
  readonly salt: `0x${string}`
  readonly signature: `0x${string}`
}

/** A deposit by Permit2, whose witness names the channel. */
export interface PermitAuthorization {
  readonly method: 'permit2'
  /** Atomic units. */
  readonly amount: string
  /** Any number that the payer has not used with Permit2 before. */
  readonly nonce: string
  /** Seconds since the epoch: the last block time at which it is taken. */
  readonly deadline: string
  readonly signature: `0x${string}`
  /** Carried out before it; without one, the payer has approved Permit2 before. */
  readonly approval?: SentApproval
}

/** A row of a claim. */
export interface ClaimEntry {
  readonly channelId: ChannelId
  readonly ceiling: bigint
  readonly total: bigint
}

const DOMAIN = { name: 'x402 Batch Settlement', version: '1', verifyingContract: CHANNELS } as const
const CHANNEL_CONFIG = keccak256(
  'ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)',
)
const VOUCHER = keccak256('Voucher(bytes32 channelId,uint128 maxClaimableAmount)')
const REFUND = keccak256('Refund(bytes32 channelId,uint256 nonce,uint128 amount)')
const ENTRY = 'ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)'
const CLAIM_ENTRY = keccak256(ENTRY)
const CLAIM_BATCH = keccak256(`ClaimBatch(ClaimEntry[] claims)${ENTRY}`)
const RECEIVE = keccak256(
  'ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)
const permitDigest = witnessTransferDigest('DepositWitness(bytes32 channelId)')

const separators = new Map<number, string>()

function digest(chainId: number, structHash: string): Uint8Array {
  let separator = separators.get(chainId)
  if (separator === undefined) {
    separator = separatorOf({ ...DOMAIN, chainId })
    separators.set(chainId, separator)
  }
  return typedDataDigest(separator, structHash)
}

/** The members of a channel as words of the ABI, in the order of its type. */
export function wordsOf(config: ChannelConfig): string {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config
  const addresses = [payer, payerAuthorizer, receiver, receiverAuthorizer, token].map(word)
  return [...addresses, word(BigInt(withdrawDelay)), salt.slice(2)].join('')
}

/** The id of a channel on a chain. */
export function channelIdOf(config: ChannelConfig, chainId: number): ChannelId {
  const id = digest(chainId, hashHex(CHANNEL_CONFIG, wordsOf(config)))
  return `0x${Buffer.from(id).toString('hex')}`
}

/** What a voucher signs: up to `ceiling` may be claimed of the channel in all. */
export function voucherDigest(channelId: ChannelId, ceiling: bigint, chainId: number): Uint8Array {
  return digest(chainId, hashHex(VOUCHER, channelId.slice(2), word(ceiling)))
}

export function refundDigest(
  channelId: ChannelId,
  nonce: bigint,
  amount: bigint,
  chainId: number,
): Uint8Array {
  return digest(chainId, hashHex(REFUND, channelId.slice(2), word(nonce), word(amount)))
}

export function claimDigest(entries: readonly ClaimEntry[], chainId: number): Uint8Array {
  const hashes = entries.map(({ channelId, ceiling, total }) =>
    hashHex(CLAIM_ENTRY, channelId.slice(2), word(ceiling), word(total)),
  )
  return digest(chainId, hashHex(CLAIM_BATCH, hashHex(...hashes)))
}

/** The nonce of a deposit names its channel, so that the money can go nowhere else. */
export function depositNonce(channelId: ChannelId, salt: `0x${string}`): `0x${string}` {
  return `0x${hashHex(channelId.slice(2), salt.slice(2))}`
}

/** What a payer signs so that a collector may take a deposit. */
export function depositDigest(
  network: Network,
  config: Pick<ChannelConfig, 'payer' | 'token'>,
  channelId: ChannelId,
  signed: DepositAuthorization,
): Uint8Array {
  if (signed.method !== 'permit2') return transferDigest(network, config, channelId, signed)
  const { amount, nonce, deadline } = signed
  const terms = { chainId: network.chainId, spender: PERMIT_COLLECTOR, token: config.token }
  return permitDigest({ ...terms, amount, nonce, deadline }, channelId.slice(2))
}

function transferDigest(
  network: Network,
  { payer }: Pick<ChannelConfig, 'payer'>,
  channelId: ChannelId,
  { amount, validAfter, validBefore, salt }: TransferAuthorization,
): Uint8Array {
  const numbers = [amount, validAfter, validBefore].map((decimal) => word(BigInt(decimal)))
  const nonce = depositNonce(channelId, salt).slice(2)
  const fields = hashHex(RECEIVE, word(payer), word(DEPOSIT_COLLECTOR), ...numbers, nonce)
  return typedDataDigest(domainSeparator(network), fields)
}

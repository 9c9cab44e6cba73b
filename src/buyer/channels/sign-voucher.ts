import { CHANNELS, DEPOSIT_COLLECTOR } from '../../engine/base/channel-contracts.ts'
import type { Network } from '../../engine/base/networks.ts'
import { type PrivateKeyAccount } from '../../vendor/viem-accounts.ts'
import type { ChannelConfig } from '../../engine/base/channel-config.ts'
import { TRANSFER_TYPES } from '../../engine/base/transfer-types.ts'
import type { SignedDeposit } from './channel.ts'

/** EIP-712 types of the contract (x402, scheme batch-settlement on EVM). */
const TYPES = {
  ChannelConfig: [
    { name: 'payer', type: 'address' },
    { name: 'payerAuthorizer', type: 'address' },
    { name: 'receiver', type: 'address' },
    { name: 'receiverAuthorizer', type: 'address' },
    { name: 'token', type: 'address' },
    { name: 'withdrawDelay', type: 'uint40' },
    { name: 'salt', type: 'bytes32' },
  ],
  Voucher: [
    { name: 'channelId', type: 'bytes32' },
    { name: 'maxClaimableAmount', type: 'uint128' },
  ],
} as const

/** EIP-3009: the members of a transfer, under the name that the collector’s call has. */
const RECEIVE = { ReceiveWithAuthorization: TRANSFER_TYPES.TransferWithAuthorization } as const

const domainOf = ({ chainId }: Network) =>
  ({ name: 'x402 Batch Settlement', version: '1', chainId, verifyingContract: CHANNELS }) as const

export async function channelIdOf(config: ChannelConfig, network: Network): Promise<`0x${string}`> {
  const { hashTypedData } = await import('../../vendor/viem.ts')
  return hashTypedData({
    domain: domainOf(network),
    types: TYPES,
    primaryType: 'ChannelConfig',
    message: { ...config },
  })
}

/** The same for the same ceiling, byte for byte. */
export function signVoucher(
  account: PrivateKeyAccount,
  network: Network,
  { channelId, ceiling }: { readonly channelId: `0x${string}`; readonly ceiling: bigint },
): Promise<`0x${string}`> {
  return account.signTypedData({
    domain: domainOf(network),
    types: TYPES,
    primaryType: 'Voucher',
    message: { channelId, maxClaimableAmount: ceiling },
  })
}

/** Signs that the collector may take a deposit for this channel, and for no other. */
export async function signDeposit(
  account: PrivateKeyAccount,
  { chainId, token }: Network,
  channelId: `0x${string}`,
  { amount, validBefore, salt }: Omit<SignedDeposit, 'signature'>,
): Promise<SignedDeposit> {
  const { concatHex, keccak256 } = await import('../../vendor/viem.ts')
  const signature = await account.signTypedData({
    domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
    types: RECEIVE,
    primaryType: 'ReceiveWithAuthorization',
    message: {
      from: account.address,
      to: DEPOSIT_COLLECTOR,
      value: amount,
      validAfter: 0n,
      validBefore,
      nonce: keccak256(concatHex([channelId, salt])),
    },
  })
  return { amount, validBefore, salt, signature }
}

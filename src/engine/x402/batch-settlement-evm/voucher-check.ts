import { sameAddress } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import type { ChannelNetwork } from './channel-network.ts'
import type { ChannelPayload } from './channel-payload.ts'
import { channelIdOf, voucherDigest } from './typed-data.ts'

/** Whether the channel is one that this service claims from. */
export function checkConfig(
  { network, payTo, terms, authorizers }: ChannelNetwork,
  { config, voucher }: Pick<ChannelPayload, 'config' | 'voucher'>,
): Refusal | undefined {
  const [authorizer = ''] = authorizers.keys()
  if (channelIdOf(config, network.chainId) !== voucher.channelId)
    return refuse(
      'invalid_batch_settlement_evm_channel_id_mismatch',
      'voucher.channelId is not the id of channelConfig',
    )
  if (!sameAddress(config.receiver, payTo) || !sameAddress(config.receiverAuthorizer, authorizer))
    return refuse(
      'invalid_batch_settlement_evm_receiver_mismatch',
      'receiver and receiverAuthorizer are not those of the offer',
    )
  if (!sameAddress(config.token, network.token.address))
    return refuse('invalid_batch_settlement_evm_token_mismatch', 'token is not the asset of the offer')
  if (config.withdrawDelay * 1000 !== terms.withdrawDelay)
    return refuse(
      'invalid_batch_settlement_evm_withdraw_delay_mismatch',
      'withdrawDelay is not the one of the offer',
    )
  if (/^0x0+$/.test(config.payerAuthorizer))
    return refuse(
      'invalid_batch_settlement_evm_voucher_signature',
      'payerAuthorizer is zero: vouchers of contract wallets are not accepted; name a key',
    )
  return undefined
}

/**
 * Whether the key of the channel has signed the voucher, in the one form that the contract reads: it would refuse a whole
 * claim because of any other. The key is that of the voucher’s channel only when the id of the channel follows from it.
 */
export function isAuthorized(
  { network }: ChannelNetwork,
  { config, voucher }: Pick<ChannelPayload, 'config' | 'voucher'>,
): boolean {
  const { signature, channelId, ceiling } = voucher
  if (!/(1b|1c)$/.test(signature) || channelIdOf(config, network.chainId) !== channelId) return false
  const split = splitSignature(signature)
  if (split === undefined) return false
  const signer = recoverSigner(voucherDigest(channelId, ceiling, network.chainId), split)
  return signer !== undefined && sameAddress(signer, config.payerAuthorizer)
}

export const BAD_VOUCHER: Refusal = {
  code: 'invalid_batch_settlement_evm_voucher_signature',
  detail:
    'the signature is not the one of payerAuthorizer for this voucher, as 65 bytes with the smaller s and v 27 or 28',
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}

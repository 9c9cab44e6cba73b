import type { JsonObject } from '../../base/json.ts'
import { isSuccessStatus } from '../../base/success-status.ts'
import type { PaymentRecord, Receipt } from '../../ledger/payment-record.ts'
import type { Refusal } from '../../base/errors.ts'
import { chargedOf, type ChannelAccount } from './channel-account.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import type { ChannelMirror } from './channel-mirror.ts'

export const SCHEME = 'batch-settlement'

/** A channel as buyers are told of it. */
export function channelState(
  id: ChannelId,
  { balance, claimed, withdrawalAt, refundNonce }: ChannelMirror,
  charged: string,
): JsonObject {
  return {
    channelId: id,
    balance,
    totalClaimed: claimed,
    withdrawRequestedAt: withdrawalAt,
    refundNonce,
    chargedCumulativeAmount: charged,
  }
}

interface Correction extends Pick<Refusal, 'code' | 'detail'> {
  /** What a deposit has to bring, where that is more than usual; in atomic units. */
  readonly leastDeposit?: bigint | undefined
}

/**
 * Tells the payer of a channel where it stands, from which its client signs a voucher that is right. Only for a request
 * whose signature was verified: vouchers are public once they are claimed.
 */
export function corrective(
  network: string,
  id: ChannelId,
  account: ChannelAccount | undefined,
  mirror: ChannelMirror,
  { code, detail, leastDeposit }: Correction,
): Refusal {
  const charged = chargedOf(account, mirror)
  const voucher = account?.voucher
  // Nothing was bought yet, or the ledger has lost it: then the chain is the whole truth.
  const voucherState =
    voucher === undefined || BigInt(voucher.ceiling) < charged
      ? {}
      : { voucherState: { signedMaxClaimable: voucher.ceiling, signature: voucher.signature } }
  const extra = {
    channelState: channelState(id, mirror, charged.toString()),
    ...voucherState,
    ...(leastDeposit === undefined ? {} : { minDeposit: leastDeposit.toString() }),
  }
  return { code, detail, reoffer: { scheme: SCHEME, network, extra } }
}

/**
 * PAYMENT-RESPONSE of a call. A voucher moves nothing: it has no transaction and no amount. With a deposit, both are the
 * deposit’s. A voucher that is charged and has no answer yet has none: clients would count its charge and sign another one,
 * and so buy the call again. Without it they send the same one, which brings the answer. A deposit is always told, so that
 * they do not make another, and so is a charge whose money goes back.
 */
export function responseOf(
  { refund }: Pick<PaymentRecord, 'refund'>,
  { network, payer, extra = {} }: Receipt,
  status: number,
): JsonObject | undefined {
  const { deposit, ...rest } = extra
  const isOwed = refund === undefined && !isSuccessStatus(status)
  if (isOwed && deposit === undefined) return undefined
  const [transaction, amount] = Array.isArray(deposit) ? deposit : ['', '']
  return { success: true, transaction, network, payer, amount, extra: rest }
}

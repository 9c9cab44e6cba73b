import { sameAddress } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import { toChecksum } from '../../base/address.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { otherArguments } from '../../payment/call-price.ts'
import type { Charge } from '../../payment/payment.ts'
import type { PaymentPayload } from '../payload.ts'
import {
  atMost,
  matches,
  requirementsOf,
  toAtomic,
  type NetworkOffer,
  type Requirements,
} from '../requirements.ts'
import type { SchemePayment } from '../scheme.ts'
import { accountName, changeAccount, chargedOf, readAccount, reserved } from './channel-account.ts'
import type { ChannelAccount } from './channel-account.ts'
import type { ChannelMirror } from './channel-mirror.ts'
import { usable } from './channel-mirror.ts'
import { creditOf, type ChannelNetwork } from './channel-network.ts'
import type { ChannelPayload } from './channel-payload.ts'
import { checkDeposit, depositSeconds, isSignedByPayer, makeDeposit, simulateDeposit } from './deposit.ts'
import type { Deposit } from './sent-deposit.ts'
import { mirrored, refresh, CANNOT_READ } from './refresh-mirror.ts'
import { channelIdOf, voucherDigest } from './typed-data.ts'
import { channelState, corrective } from './wire.ts'

type Bought = Omit<ChannelPayload, 'type' | 'amount'>

/** A call that is paid through a channel, with a deposit into it or without. */
export function channelPayment(
  on: ChannelNetwork,
  offer: NetworkOffer,
  { accepted, payload }: PaymentPayload<Bought>,
): SchemePayment {
  const { network, ledger } = on
  const { config, voucher } = payload
  const { channelId: id, ceiling } = voucher
  const amount = BigInt(accepted.amount)
  const deposit: Deposit | undefined =
    payload.deposit === undefined ? undefined : { id, config, signed: payload.deposit }
  /** The call that it is to pay for and the key of that, once they are known. */
  let bought: { readonly call: string; readonly key: string } | undefined

  const correct = (
    account: ChannelAccount | undefined,
    mirror: ChannelMirror,
    code: Refusal['code'],
    detail: string,
    leastDeposit?: bigint,
  ): Refusal => corrective(network.id, id, account, mirror, { code, detail, leastDeposit })

  /** Whether the voucher continues the channel where it stands. */
  const fits = (account: ChannelAccount | undefined, mirror: ChannelMirror): Refusal | undefined => {
    const charged = chargedOf(account, mirror)
    if (charged + amount === ceiling) return undefined
    const isBelow = ceiling <= BigInt(mirror.claimed)
    return correct(
      account,
      mirror,
      isBelow
        ? 'invalid_batch_settlement_evm_cumulative_below_claimed'
        : 'invalid_batch_settlement_evm_cumulative_amount_mismatch',
      `the channel was charged ${charged} so far; a voucher for this call has the ceiling ${charged + amount}, not ${ceiling}`,
    )
  }

  /** Whether the channel holds what the voucher promises; `added`: what a deposit brings. */
  const covers = (
    account: ChannelAccount | undefined,
    mirror: ChannelMirror,
    added: bigint,
  ): Refusal | undefined => {
    const held = usable(mirror) - reserved(account)
    if (ceiling <= held + added) return undefined
    // Clients that are told of a mismatch read the balance and top the channel up; told of anything else, they give up.
    return correct(
      account,
      mirror,
      'invalid_batch_settlement_evm_cumulative_amount_mismatch',
      `the channel holds ${held}, which is less than the ceiling ${ceiling}: add a deposit`,
      ceiling - held > on.terms.leastDeposit ? ceiling - held : undefined,
    )
  }

  return {
    key: keyOf(id, network.id, ceiling, 0, ''),
    network: network.id,
    asset: network.token.address,
    payee: on.payTo,
    authorizationHash: Buffer.from(voucherDigest(id, ceiling, network.chainId)).toString('base64url'),
    authorizedAmount: amount,
    amountFor: (price) => atMost(amount, toAtomic(price, network.token.decimals)),
    lockKey: accountName(network.id, id),
    keyFor: async (call) => {
      const { account } = await readAccount(ledger, network.id, id)
      const last = account?.last
      if (last !== undefined && last.ceiling === ceiling.toString() && last.call === call) {
        const record = await ledger.get(last.key)
        // Its answer may be lost. Once it has arrived, the same voucher is one for another call.
        if (record?.receipt !== undefined && record.state !== 'sent') return last.key
      }
      bought = { call, key: keyOf(id, network.id, ceiling, account?.charges ?? 0, call) }
      return bought.key
    },
    check: ({ endpoint, price, settle, timeoutSeconds = offer.timeoutSeconds }, now) => {
      const asked = requirementsOf(
        { ...offer, timeoutSeconds: depositSeconds(timeoutSeconds) },
        price,
        settle,
      )
      // The least deposit follows the prices: who has signed for an older one is not turned away. Both ways to make one are
      // taken, whichever is announced.
      if (!matches(accepted, withoutDeposit(asked), sameAddress))
        return refuse(
          'no_matching_requirements',
          otherArguments(endpoint, accepted.amount, asked.amount) ?? NO_OFFER_OF_OURS,
        )
      return checkConfig(on, payload) ?? (deposit && checkDeposit(on, deposit, Math.floor(now / 1000)))
    },
    verify: async () => {
      if (!isAuthorized(on, payload)) return { kind: 'refused', refusal: BAD_VOUCHER }
      if (deposit !== undefined && !isSignedByPayer(on, deposit))
        return { kind: 'refused', refusal: BAD_DEPOSIT }
      const isOwn = sameAddress(config.payer, config.payerAuthorizer) || deposit !== undefined
      const { account } = isOwn ? { account: undefined } : await readAccount(ledger, network.id, id)
      // Anybody can fund a channel in the name of another, and must not reach what is kept for that payer.
      const payer = isOwn || account?.isProven === true ? config.payer : config.payerAuthorizer
      const validBefore = on.clock.now() + VALID_MS
      return { kind: 'verified', payer: toChecksum(payer), account: 'key', validBefore }
    },
    simulate: async () => {
      const { account } = await readAccount(ledger, network.id, id)
      // Until the call is known, it may be one whose answer is lost.
      if (bought === undefined && account?.last?.ceiling === ceiling.toString()) return undefined
      let mirror = await mirrored(on, id)
      if (mirror === undefined) return CANNOT_READ
      const misfit = fits(account, mirror)
      if (misfit !== undefined) return misfit
      const added = BigInt(deposit?.signed.amount ?? 0)
      // Its payer may have added a deposit by itself.
      if (covers(account, mirror, added) !== undefined) mirror = (await refresh(on, id)) ?? mirror
      const uncovered = covers(account, mirror, added)
      if (uncovered !== undefined) return uncovered
      // Where it holds less than it owes, nothing but a deposit lets it be claimed.
      const isShort = deposit !== undefined && chargedOf(account, mirror) > BigInt(mirror.balance)
      if (!isShort && ceiling - BigInt(mirror.claimed) > mostUnclaimed(on, mirror, amount))
        return OWES_TOO_MUCH
      if (deposit === undefined) return undefined
      const simulated = await simulateDeposit(on, deposit)
      if (simulated.kind === 'refused') return simulated.refusal
      if (simulated.kind === 'passed') return undefined
      mirror = await refresh(on, id)
      return mirror === undefined ? CANNOT_READ : covers(account, mirror, 0n)
    },
    // Clients sign again when they are told where the channel stands; told that it is busy, they give up.
    busy: async () => {
      const { account } = await readAccount(ledger, network.id, id)
      const mirror = await mirrored(on, id)
      if (mirror === undefined) return CANNOT_READ
      return correct(
        account,
        mirror,
        'invalid_batch_settlement_evm_cumulative_amount_mismatch',
        'another call of this channel is being worked on; nothing was charged for this one',
      )
    },
    release: () => undefined,
    commit: async (charged): Promise<Charge> => {
      let transaction: string | undefined
      if (deposit !== undefined) {
        const done = await makeDeposit(on, deposit)
        if (done.kind === 'failed') return done
        ;({ transaction } = done)
      }
      const stored = await readAccount(ledger, network.id, id)
      const { account } = stored
      const mirror = await mirrored(on, id)
      if (mirror === undefined) return { kind: 'failed', refusal: CANNOT_READ }
      const refusal = fits(account, mirror) ?? covers(account, mirror, 0n)
      if (refusal !== undefined) return { kind: 'failed', refusal }
      const before = chargedOf(account, mirror)
      const total = before + charged
      const charges = account?.charges ?? 0
      // A voucher is kept for what was charged, and no further one: claims make it public, and it pays for a call.
      const isCovered = total <= BigInt(account?.voucher?.ceiling ?? mirror.claimed)
      const { setAside: _setAside, unclaimedSince, ...kept } = account ?? {}
      const isUnclaimed = total > BigInt(mirror.claimed)
      const since = before > BigInt(mirror.claimed) ? unclaimedSince : undefined
      const next: ChannelAccount = {
        ...kept,
        config,
        charged: total.toString(),
        ...(isCovered ? {} : { voucher: { ceiling: ceiling.toString(), signature: voucher.signature } }),
        charges: charges + 1,
        last: { ceiling: ceiling.toString(), ...(bought ?? UNNAMED) },
        isProven: account?.isProven === true || deposit !== undefined,
        ...(isUnclaimed ? { unclaimedSince: since ?? on.clock.now() } : {}),
      }
      const receipt = {
        transaction: '',
        network: network.id,
        payer: toChecksum(config.payer),
        amount: charged.toString(),
        extra: {
          chargedAmount: charged.toString(),
          channelState: channelState(id, mirror, total.toString()),
          ...(deposit !== undefined && transaction !== undefined
            ? { deposit: [transaction, deposit.signed.amount] }
            : {}),
        },
      }
      return { kind: 'charged', receipt, state: changeAccount(stored, next) }
    },
  }
}

/** Every payment is given its call before it is charged. */
const UNNAMED = { call: '', key: '' }

/** A voucher does not expire: this is for the record, which has to end. */
const VALID_MS = 3_600_000

/**
 * A voucher does not name the call it pays for, and the same one may be signed for several: after a call that cost
 * nothing, and after one that has failed. `charges` tells the first from the second, `call` one call from another.
 */
function keyOf(id: string, network: string, ceiling: bigint, charges: number, call: string): string {
  return `x402:${network}:channel:${id}:${ceiling}:${charges}:${call}`
}

function withoutDeposit({ extra, ...asked }: Requirements): Requirements {
  const { minDeposit: _minDeposit, assetTransferMethod: _method, ...rest } = extra ?? {}
  return { ...asked, extra: rest }
}

/** What a channel may owe for a call of this amount: two of them at least, so that it is due before it has to wait. */
function mostUnclaimed(on: ChannelNetwork, mirror: ChannelMirror, amount: bigint): bigint {
  const most = creditOf(on, mirror)
  return most < 2n * amount ? 2n * amount : most
}

const OWES_TOO_MUCH: Refusal = {
  code: 'payer_limit_reached',
  detail: 'the channel owes as much as it may until it is claimed; nothing was charged',
  retryAfter: 10,
}

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

const BAD_DEPOSIT: Refusal = {
  code: 'invalid_batch_settlement_evm_deposit_simulation_failed',
  detail: 'the deposit is not signed by the payer of the channel',
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail }
}

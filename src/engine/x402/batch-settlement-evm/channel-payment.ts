import { sameAddress, toChecksum } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
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
import { accountName, changeAccount, chargedOf, readAccount, type ChannelAccount } from './channel-account.ts'
import type { ChannelMirror } from './channel-mirror.ts'
import { creditOf, type ChannelNetwork } from './channel-network.ts'
import type { ChannelPayload } from './channel-payload.ts'
import { checkDeposit, depositSeconds, isSignedByPayer, makeDeposit, simulateDeposit } from './deposit.ts'
import type { Deposit } from './sent-deposit.ts'
import { mirrored, refresh, CANNOT_READ } from './refresh-mirror.ts'
import { voucherDigest } from './typed-data.ts'
import { accountAfter } from './voucher-charge.ts'
import { BAD_VOUCHER, checkConfig, isAuthorized } from './voucher-check.ts'
import { busyAt, misfitOf, shortfallOf, type SentVoucher } from './voucher-fit.ts'
import { channelState } from './wire.ts'

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
  const sent: SentVoucher = {
    network: network.id,
    id,
    ceiling,
    amount,
    leastDeposit: on.terms.leastDeposit,
  }
  const deposit: Deposit | undefined =
    payload.deposit === undefined ? undefined : { id, config, signed: payload.deposit }
  /** The call that it is to pay for and the key of that, once they are known. */
  let bought: { readonly call: string; readonly key: string } | undefined

  return {
    key: keyOf(id, network.id, ceiling, 0, ''),
    network: network.id,
    asset: network.token.address,
    payee: on.payTo,
    authorizationHash: Buffer.from(voucherDigest(id, ceiling, network.chainId)).toString('base64url'),
    authorizedAmount: amount,
    amountFor: (price) => atMost(amount, toAtomic(price, network.token.decimals)),
    lockKey: accountName(network.id, id),
    keyFor: async (call, hasArrived) => {
      const { account } = await readAccount(ledger, network.id, id)
      const last = account?.last
      if (last !== undefined && last.ceiling === ceiling.toString() && last.call === call) {
        const record = await ledger.get(last.key)
        // Its answer may be lost. Once it has arrived, or its money goes back, the same voucher is one for another call.
        const isCharged = record?.receipt !== undefined && record.refund === undefined
        if (isCharged && !hasArrived(record)) return last.key
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
        return {
          code: 'no_matching_requirements',
          detail: otherArguments(endpoint, accepted.amount, asked.amount) ?? NO_OFFER_OF_OURS,
        }
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
      return simulate(on, sent, account, deposit)
    },
    busy: async () => {
      const { account } = await readAccount(ledger, network.id, id)
      const mirror = await mirrored(on, id)
      return mirror === undefined ? CANNOT_READ : busyAt(sent, { account, mirror })
    },
    release: () => undefined,
    // A deposit moves money before the charge.
    reservation: deposit === undefined ? 'with the first change' : 'before the work',
    commit: async (charged): Promise<Charge> => {
      let transaction: string | undefined
      if (deposit !== undefined) {
        const done = await makeDeposit(on, deposit)
        if (done.kind === 'failed') return done
        ;({ transaction } = done)
      }
      const stored = await readAccount(ledger, network.id, id)
      const mirror = await mirrored(on, id)
      if (mirror === undefined) return { kind: 'failed', refusal: CANNOT_READ }
      const standing = { account: stored.account, mirror }
      const refusal = misfitOf(sent, standing) ?? shortfallOf(sent, standing, 0n)
      if (refusal !== undefined) return { kind: 'failed', refusal }
      const hasDeposit = deposit !== undefined
      const purchase = { config, voucher, charged, bought: bought ?? UNNAMED, hasDeposit }
      const next = accountAfter(standing, { ...purchase, now: on.clock.now() })
      const receipt = {
        transaction: '',
        network: network.id,
        payer: toChecksum(config.payer),
        amount: charged.toString(),
        extra: {
          chargedAmount: charged.toString(),
          channelState: channelState(id, mirror, next.charged),
          ...(deposit !== undefined && transaction !== undefined
            ? { deposit: [transaction, deposit.signed.amount] }
            : {}),
        },
      }
      return { kind: 'charged', receipt, state: changeAccount(stored, next) }
    },
  }
}

/** Whether the voucher would be taken now, with its deposit. */
async function simulate(
  on: ChannelNetwork,
  sent: SentVoucher,
  account: ChannelAccount | undefined,
  deposit: Deposit | undefined,
): Promise<Refusal | undefined> {
  let mirror = await mirrored(on, sent.id)
  if (mirror === undefined) return CANNOT_READ
  const misfit = misfitOf(sent, { account, mirror })
  if (misfit !== undefined) return misfit
  const added = BigInt(deposit?.signed.amount ?? 0)
  // Its payer may have added a deposit by itself.
  if (shortfallOf(sent, { account, mirror }, added) !== undefined)
    mirror = (await refresh(on, sent.id)) ?? mirror
  const shortfall = shortfallOf(sent, { account, mirror }, added)
  if (shortfall !== undefined) return shortfall
  // Where it holds less than it owes, nothing but a deposit lets it be claimed.
  const isShort = deposit !== undefined && chargedOf(account, mirror) > BigInt(mirror.balance)
  if (!isShort && sent.ceiling - BigInt(mirror.claimed) > mostUnclaimed(on, mirror, sent.amount))
    return OWES_TOO_MUCH
  if (deposit === undefined) return undefined
  const simulated = await simulateDeposit(on, deposit)
  if (simulated.kind === 'refused') return simulated.refusal
  if (simulated.kind === 'passed') return undefined
  mirror = await refresh(on, sent.id)
  if (mirror === undefined) return CANNOT_READ
  return shortfallOf(sent, { account, mirror }, 0n)
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

const BAD_DEPOSIT: Refusal = {
  code: 'invalid_batch_settlement_evm_deposit_simulation_failed',
  detail: 'the deposit is not signed by the payer of the channel',
}

const NO_OFFER_OF_OURS = '"accepted" is not one of the offers made here'

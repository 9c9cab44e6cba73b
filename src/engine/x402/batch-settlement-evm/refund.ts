import type { Refusal } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { sameAddress, toChecksum } from '../../base/address.ts'
import { signDigest } from '../../chains/evm/signature.ts'
import type { Log } from '../../chains/evm/event-log.ts'
import type { SchemeAction } from '../scheme.ts'
import { changeAccount, chargedOf, readAccount, reserved } from './channel-account.ts'
import type { ChannelAccount } from './channel-account.ts'
import { claimCall, refundCall, together } from './channel-calls.ts'
import { channelOf, REFUNDED } from './channel-events.ts'
import type { ChannelMirror } from './channel-mirror.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { BAD_VOUCHER, checkConfig, isAuthorized } from './voucher-check.ts'
import type { ChannelPayload } from './channel-payload.ts'
import { sendCall } from './channel-transaction.ts'
import { signClaim, rowOf } from './claim-row.ts'
import { recordClaim } from './sent-claim.ts'
import { CHANNELS } from '../../base/channel-contracts.ts'
import { CANNOT_READ, refresh } from './refresh-mirror.ts'
import { refundDigest } from './typed-data.ts'
import { channelState, corrective } from './wire.ts'

/** Gas of a refund together with the claim before it. */
const GAS_REFUND = 300_000n
/** How long a refund may wait in the pool. */
const EXPIRES_MS = 120_000
/** Within this time the same request is a copy. */
const COPY_MS = 600_000
/** Refunds of one payer in a day: each costs gas. */
const MOST_REFUNDS = 5
const DAY_MS = 86_400_000

type Done = Awaited<ReturnType<SchemeAction['run']>>

/** Gives back what is left of a channel, after what it owes is claimed: both in one transaction, or neither. */
export function refundAction(on: ChannelNetwork, payload: ChannelPayload): SchemeAction {
  return { run: () => refund(on, payload) }
}

async function refund(on: ChannelNetwork, payload: ChannelPayload): Promise<Done> {
  const { network, ledger, clock } = on
  const { config, voucher, amount } = payload
  const { channelId: id, ceiling, signature } = voucher
  const misfit = checkConfig(on, payload)
  if (misfit !== undefined) return refused(misfit)
  if (!isAuthorized(on, payload)) return refused(BAD_VOUCHER)
  const stored = await readAccount(ledger, network.id, id)
  const { account } = stored
  const request = `${signature}:${amount ?? 'all'}`
  const earlier = account?.refund
  if (earlier?.request === request && clock.now() - earlier.at < COPY_MS) {
    if (earlier.result !== undefined) return { kind: 'done', result: earlier.result }
    return refused(UNDER_WAY)
  }
  if (reserved(account) > 0n) return refused(UNDER_WAY)
  const mirror = await refresh(on, id)
  if (mirror === undefined) return refused(CANNOT_READ)
  const charged = chargedOf(account, mirror)
  if (ceiling !== charged) {
    const code = 'invalid_batch_settlement_evm_cumulative_amount_mismatch'
    const detail = `the channel was charged ${charged}; a refund is signed for that, not for ${ceiling}`
    return refused(corrective(network.id, id, account, mirror, { code, detail }))
  }
  const left = BigInt(mirror.balance) - charged
  const asked = amount ?? left
  const refusal = checkAmount(on, asked, left) ?? (await limit(on, payload, request))
  if (refusal !== undefined) return refused(refusal)
  const begun: ChannelAccount = {
    ...(account ?? { config, charged: charged.toString(), charges: 0, isProven: false }),
    refund: { request, amount: asked.toString(), nonce: mirror.refundNonce, at: clock.now() },
  }
  // From here on no call of the channel can be charged what is given back.
  if (!(await ledger.commit([], [changeAccount(stored, begun)]))) return refused(UNDER_WAY)
  return carryOut(on, payload, begun, mirror, asked)
}

async function carryOut(
  on: ChannelNetwork,
  { config, voucher: { channelId: id } }: ChannelPayload,
  account: ChannelAccount,
  mirror: ChannelMirror,
  asked: bigint,
): Promise<Done> {
  const { network, clock, authorizers } = on
  const key = authorizers.get(config.receiverAuthorizer)
  if (key === undefined) throw new Error('a channel without its key passes no check')
  const nonce = BigInt(mirror.refundNonce)
  const signed = signDigest(key, refundDigest(id, nonce, asked, network.chainId))
  const row = rowOf(account, mirror)
  const calls = [
    ...(row === undefined ? [] : [claimCall([row], signClaim([row], key, network.chainId))]),
    refundCall(config, asked, nonce, signed),
  ]
  const outcome = await sendCall(on, {
    data: together(calls),
    gas: GAS_REFUND,
    expires: clock.now() + EXPIRES_MS,
    payer: config.payer,
    // It claims too: what a reorganization undoes of that is claimed again.
    record: ({ hash }) => recordClaim(on, { hash, channels: [id], at: clock.now(), isRefund: true }),
  })
  if (outcome.kind === 'unknown') return refused(UNDER_WAY)
  if (outcome.kind !== 'mined') {
    await endRefund(on, id, undefined)
    return refused({
      code: outcome.kind === 'unsent' ? 'chain_unavailable' : 'settlement_failed',
      detail: 'the refund was not carried out; nothing was charged',
    })
  }
  const { hash, logs } = outcome.receipt
  const after = (await refresh(on, id)) ?? mirror
  const result = {
    success: true,
    transaction: hash,
    network: network.id,
    payer: toChecksum(config.payer),
    amount: refundedIn(logs, id).toString(),
    extra: { channelState: channelState(id, after, account.charged) },
  }
  await endRefund(on, id, result)
  return { kind: 'done', result }
}

function refundedIn(logs: readonly Log[], id: string): bigint {
  const log = logs.find(
    (each) => sameAddress(each.address, CHANNELS) && each.topics[0] === REFUNDED && channelOf(each) === id,
  )
  return log === undefined ? 0n : BigInt(log.data)
}

/** Notes the result of a refund; undefined: it was not carried out. */
export async function endRefund(
  { ledger, network }: Pick<ChannelNetwork, 'ledger' | 'network'>,
  id: ChannelPayload['voucher']['channelId'],
  result: JsonObject | undefined,
): Promise<void> {
  for (;;) {
    const stored = await readAccount(ledger, network.id, id)
    if (stored.account === undefined) return
    const { refund, ...rest } = stored.account
    if (refund === undefined || refund.result !== undefined) return
    const ended: ChannelAccount = result === undefined ? rest : { ...rest, refund: { ...refund, result } }
    if (await ledger.commit([], [changeAccount(stored, ended)])) return
  }
}

function checkAmount({ terms }: ChannelNetwork, asked: bigint, left: bigint): Refusal | undefined {
  if (left <= 0n)
    return {
      code: 'invalid_batch_settlement_evm_refund_no_balance',
      detail: 'nothing is left in the channel to give back',
    }
  const least = terms.leastDeposit / LEAST_SHARE
  if (asked > 0n && asked <= left && asked >= least) return undefined
  return {
    code: 'invalid_batch_settlement_evm_refund_amount_invalid',
    detail: `a refund is between ${least} and the ${left} that is left; less comes back by a timed withdrawal`,
  }
}

/** A refund below this part of the least deposit is not worth its gas. */
const LEAST_SHARE = 10n

async function limit(
  { ledger, clock: { now } }: ChannelNetwork,
  { config: { payer } }: ChannelPayload,
  request: string,
): Promise<Refusal | undefined> {
  const amount = { id: `${request}:${now()}`, value: 1n, until: now() + DAY_MS }
  const most = { count: MOST_REFUNDS, sum: undefined }
  const until = await ledger.addWithinLimit(`channel-refunds:${payer}`, amount, most, now())
  if (until === undefined) return undefined
  return {
    code: 'payer_limit_reached',
    detail: `${MOST_REFUNDS} refunds of this payer were paid for today: withdraw from the channel, or wait`,
    retryAfter: Math.ceil((until - now()) / 1000),
  }
}

const UNDER_WAY: Refusal = {
  code: 'payment_pending',
  detail: 'a call or a refund of this channel is under way; nothing was charged',
  retryAfter: 5,
}

function refused(refusal: Refusal): Done {
  return { kind: 'refused', refusal }
}

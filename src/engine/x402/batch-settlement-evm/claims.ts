import type { Address } from '../../base/address.ts'
import { lookAtBlocks } from '../../chains/evm/finality.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import { poll } from '../../base/poll.ts'
import type { BlockReference } from '../../ledger/payment-record.ts'
import { changeAccount, listAccounts, readAccount, type ChannelAccount } from './channel-account.ts'
import { claimCall, readUnsettled, settleCall, type ClaimRow } from './channel-calls.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import { readMirror, updateMirror, usable, type ChannelMirror } from './channel-mirror.ts'
import { creditOf, type ChannelNetwork } from './channel-network.ts'
import { CLAIM_PATIENCE_MS, sendCall, type Outcome } from './channel-transaction.ts'
import { rowOf, signClaim } from './claim-row.ts'
import { CHANNELS } from '../../base/channel-contracts.ts'
import { refresh } from './refresh-mirror.ts'
import { endRefund } from './refund.ts'
import { listClaims, readClaim, recordClaim, type SentClaim } from './sent-claim.ts'

/** Channels of one transaction: about 2.6 million gas, far below the limit of every network. */
const MOST_ROWS = 100
/** How long a claim may wait in the pool. */
const EXPIRES_MS = 600_000
/**
 * A claim that the node does not know after this long was never sent, as by a process that has died: it is claimed again.
 * Much less than the shortest withdrawal; should the first one be mined after all, the second one changes nothing.
 */
const UNSENT_MS = 15_000
/** A refund whose outcome the chain does not show after this long is given up. */
const GIVEN_UP_MS = 900_000
/** A channel that could not be claimed is tried again after this long: less than the shortest withdrawal. */
const SET_ASIDE_MS = 600_000
const GAS_SETTLE = 120_000n
/** How an operator waits for claims that are under way: longer than UNSENT_MS and a block. */
const UNDER_WAY_PACE = { first: 500, factor: 1, longest: 500, patience: CLAIM_PATIENCE_MS }

/** Which channels are claimed: those that are due, or all that owe something. */
export type ClaimScope = 'due' | 'all'

/** What a round of claims has done. Amounts are in atomic units. */
export interface ClaimRound {
  /** CAIP-2. */
  readonly network: string
  readonly token: Address
  /** Channels that were claimed. */
  readonly channels: number
  readonly claimed: bigint
  /** Paid out to the payee. */
  readonly settled: bigint
  readonly transactions: readonly string[]
  /** Channels whose claim the contract does not take. */
  readonly setAside: number
}

interface Due {
  readonly id: ChannelId
  readonly row: ClaimRow
  readonly claimed: bigint
}

/** What is unclaimed of a channel, in atomic units. */
export function unclaimedOf(
  { charged }: ChannelAccount,
  { claimed }: Pick<ChannelMirror, 'claimed'>,
): bigint {
  const open = BigInt(charged) - BigInt(claimed)
  return open > 0n ? open : 0n
}

/**
 * Claims what channels owe, as many as fit into a transaction, and then has the money paid out. For one process at a time.
 * Claiming the same twice changes nothing, so that whatever was left by a process that has died is claimed again.
 */
export async function claimChannels(on: ChannelNetwork, scope: ClaimScope): Promise<ClaimRound> {
  const { underWay, isPayoutDue } = await (scope === 'all' ? awaitClaims(on) : followClaims(on))
  const { due, receivers } = await gather(on, scope, underWay)
  const { network } = on
  const round = {
    network: network.id,
    token: network.token.address,
    channels: 0,
    claimed: 0n,
    settled: 0n,
    transactions: new Array<string>(),
    setAside: 0,
  }
  for (const [authorizer, rows] of byAuthorizer(due)) {
    const key = on.authorizers.get(authorizer)
    if (key === undefined) {
      on.report(
        `${rows.length} channels name the authorizer ${authorizer}, whose key is not configured: what they owe cannot be claimed`,
      )
      continue
    }
    for (let first = 0; first < rows.length; first += MOST_ROWS)
      await claimRows(on, rows.slice(first, first + MOST_ROWS), key, round)
  }
  if (round.channels > 0 || isPayoutDue || scope === 'all')
    for (const receiver of receivers) await settle(on, receiver, round)
  return round
}

async function gather(
  on: ChannelNetwork,
  scope: ClaimScope,
  underWay: ReadonlySet<ChannelId>,
): Promise<{ readonly due: readonly Due[]; readonly receivers: ReadonlySet<Address> }> {
  const due: Due[] = []
  // Channels of an earlier payee pay to that one.
  const receivers = new Set([on.payTo])
  for await (const { id, account } of listAccounts(on.ledger, on.network.id)) {
    receivers.add(account.config.receiver)
    if (account.refund !== undefined && account.refund.result === undefined)
      await lookAtRefund(on, id, account)
    if (underWay.has(id) || (scope === 'due' && isSetAside(on, account))) continue
    const known = scope === 'all' ? undefined : (await readMirror(on.ledger, on.network.id, id)).mirror
    // An operator asks the chain: what is known here may have been undone a moment ago.
    const mirror = known ?? (await refresh(on, id))
    const row = mirror === undefined ? undefined : rowOf(account, mirror)
    if (mirror === undefined || row === undefined) continue
    if (scope === 'all' || isDue(on, account, mirror)) due.push({ id, row, claimed: BigInt(mirror.claimed) })
  }
  return { due, receivers }
}

function isSetAside({ clock }: ChannelNetwork, { setAside }: ChannelAccount): boolean {
  return setAside !== undefined && clock.now() - setAside.at < SET_ASIDE_MS
}

function isDue(on: ChannelNetwork, account: ChannelAccount, mirror: ChannelMirror): boolean {
  const { terms, clock } = on
  // What a withdrawal leaves is not in danger: without that, one of a single unit would have every call claimed.
  if (BigInt(account.charged) > usable(mirror)) return true
  const unclaimed = unclaimedOf(account, mirror)
  // A channel that may owe little is claimed before it has to wait.
  const half = creditOf(on, mirror) / 2n
  const threshold = half < terms.claimAfter ? half : terms.claimAfter
  if (unclaimed >= threshold) return true
  const since = Math.max(account.unclaimedSince ?? 0, mirror.claimedAt ?? 0)
  return clock.now() - since >= terms.claimEvery
}

function byAuthorizer(due: readonly Due[]): ReadonlyMap<Address, readonly Due[]> {
  const groups = new Map<Address, Due[]>()
  for (const each of due) {
    const { receiverAuthorizer } = each.row.config
    const group = groups.get(receiverAuthorizer)
    if (group === undefined) groups.set(receiverAuthorizer, [each])
    else group.push(each)
  }
  return groups
}

/** Counts what was done, while it is done. */
type Counted = { -readonly [name in keyof ClaimRound]: ClaimRound[name] } & { transactions: string[] }

/** Claims rows in one transaction. When the contract would refuse it, halves are tried, until the row at fault is found. */
async function claimRows(
  on: ChannelNetwork,
  rows: readonly Due[],
  key: `0x${string}`,
  round: Counted,
): Promise<void> {
  const { chain, signers } = await on.open()
  const [from] = signers.ready
  const [only] = rows
  if (from === undefined || only === undefined) return
  const list = rows.map(({ row }) => row)
  const data = claimCall(list, signClaim(list, key, on.network.chainId))
  const gas = await chain.estimateGas(from, CHANNELS, data)
  if (gas.kind !== 'result') {
    if (!isRevert(gas)) return on.report('what channels owe cannot be claimed now: the node does not answer')
    return split(on, rows, key, round)
  }
  const { clock } = on
  const outcome = await sendCall(on, {
    data,
    gas: (gas.result * 5n) / 4n,
    expires: clock.now() + EXPIRES_MS,
    record: ({ hash }) => recordClaim(on, { hash, channels: rows.map(({ id }) => id), at: clock.now() }),
  })
  switch (outcome.kind) {
    case 'mined': {
      const { hash, block, blockHash } = outcome.receipt
      const { state, claim } = await readClaim(on, hash)
      if (claim !== undefined) {
        const next = JSON.stringify({ ...claim, block: { number: Number(block), hash: blockHash } })
        await on.ledger.commit([], [{ previous: state, next }])
      }
      for (const { id, row } of rows) await noteClaimed(on, id, row.total)
      round.channels += rows.length
      round.claimed += rows.reduce((sum, { row, claimed }) => sum + row.total - claimed, 0n)
      round.transactions.push(hash)
      return
    }
    case 'refused':
      return split(on, rows, key, round)
    case 'reverted':
      for (const { id } of rows) await refresh(on, id)
      return
    case 'unsent':
      on.report(`what channels owe cannot be claimed now: ${outcome.detail}`)
      return
    case 'unknown':
      // It is followed in the next round.
      on.report(`the claim ${outcome.hash} is in no block yet`)
      return
  }
}

async function split(
  on: ChannelNetwork,
  rows: readonly Due[],
  key: `0x${string}`,
  round: Counted,
): Promise<void> {
  const [only] = rows
  if (only === undefined) return
  if (rows.length === 1) return setAside(on, only, key, round)
  const middle = Math.ceil(rows.length / 2)
  await claimRows(on, rows.slice(0, middle), key, round)
  await claimRows(on, rows.slice(middle), key, round)
}

/** Claims what the channel holds. For the rest it is not claimed for a while, unless something is bought through it, or an operator claims all. */
async function setAside(
  on: ChannelNetwork,
  { id, row }: Due,
  key: `0x${string}`,
  round: Counted,
): Promise<void> {
  const mirror = await refresh(on, id)
  if (mirror === undefined) return
  const [held, claimed] = [BigInt(mirror.balance), BigInt(mirror.claimed)]
  const isShort = held < row.total
  // A withdrawal, or a deposit that a reorganization has undone, leaves less than was charged: better that than nothing.
  if (isShort && held > claimed)
    await claimRows(on, [{ id, row: { ...row, total: held }, claimed }], key, round)
  const reason = isShort
    ? `the channel holds ${mirror.balance}, which is less than the ${row.total} that were charged`
    : 'the contract does not take the claim'
  const stored = await readAccount(on.ledger, on.network.id, id)
  if (stored.account === undefined) return
  const aside = { reason, at: on.clock.now() }
  await on.ledger.commit([], [changeAccount(stored, { ...stored.account, setAside: aside })])
  on.report(`channel ${id} of ${row.config.payer} cannot be claimed: ${reason}`)
  round.setAside += 1
}

async function noteClaimed(
  { ledger, network, clock }: ChannelNetwork,
  id: ChannelId,
  total: bigint,
): Promise<void> {
  await updateMirror(ledger, network.id, id, (mirror) => {
    if (mirror === undefined) return undefined
    const claimed = BigInt(mirror.claimed) > total ? mirror.claimed : total.toString()
    return { ...mirror, claimed, claimedAt: clock.now() }
  })
}

/** Has what was claimed paid out to a payee. */
async function settle(on: ChannelNetwork, receiver: Address, round: Counted): Promise<void> {
  const { chain } = await on.open()
  const token = on.network.token.address
  const open = await readUnsettled(chain, receiver, token)
  if (open === undefined || open === 0n) return
  const outcome = await sendCall(on, {
    data: settleCall(receiver, token),
    gas: GAS_SETTLE,
    expires: on.clock.now() + EXPIRES_MS,
    // Anybody may send it, any number of times: what was not sent is sent with the next claim.
    record: async () => undefined,
  })
  if (outcome.kind !== 'mined') {
    on.report(`what was claimed is not paid out yet: ${reasonOf(outcome)}`)
    return
  }
  round.settled += open
  round.transactions.push(outcome.receipt.hash)
}

function reasonOf(outcome: Exclude<Outcome, { readonly kind: 'mined' }>): string {
  switch (outcome.kind) {
    case 'unknown':
      return `transaction ${outcome.hash} is in no block yet`
    case 'reverted':
      return `transaction ${outcome.receipt.hash} has failed`
    default:
      return outcome.detail
  }
}

interface Following {
  /** Channels with a claim that may still be mined. */
  readonly underWay: ReadonlySet<ChannelId>
  /** Whether a claim has got further: its payout may be lost, with a process or in a reorganization. */
  readonly isPayoutDue: boolean
}

/** Waits for claims that may still be mined, and for those that a reorganization has put back into the pool. */
async function awaitClaims(on: ChannelNetwork): Promise<Following> {
  let last = await followClaims(on)
  let isPayoutDue = last.isPayoutDue
  const done = await poll(on.clock, UNDER_WAY_PACE, async () => {
    if (last.underWay.size === 0) return last
    await on.clock.sleep(UNDER_WAY_PACE.first)
    last = await followClaims(on)
    isPayoutDue ||= last.isPayoutDue
    return undefined
  })
  if (done === undefined && last.underWay.size > 0)
    on.report(`claims of ${last.underWay.size} channels are in no block yet: ask again later`)
  return { underWay: last.underWay, isPayoutDue }
}

/** Looks at the claims that are not final: of this process, and of those that have died. */
async function followClaims(on: ChannelNetwork): Promise<Following> {
  const { ledger, network, clock } = on
  const underWay = new Set<ChannelId>()
  let isPayoutDue = false
  for await (const { state, claim } of listClaims(on)) {
    const followed = await follow(on, claim)
    const isFurther = followed.kind === 'mined' || followed.kind === 'over'
    if (isFurther && claim.isRefund !== true) isPayoutDue = true
    if (followed.kind === 'under way') for (const id of claim.channels) underWay.add(id)
    else if (followed.kind === 'over') {
      await ledger.commit([], [{ previous: state, next: undefined }])
    } else if (followed.kind === 'mined') {
      const next = JSON.stringify({ ...claim, block: followed.block })
      await ledger.commit([], [{ previous: state, next }])
      for (const id of claim.channels)
        await updateMirror(
          ledger,
          network.id,
          id,
          (mirror) => mirror && { ...mirror, claimedAt: clock.now() },
        )
    }
  }
  return { underWay, isPayoutDue }
}

type Followed =
  /** In a block that may be undone, or the node does not say. */
  | { readonly kind: 'as before' }
  | { readonly kind: 'under way' }
  | { readonly kind: 'mined'; readonly block: BlockReference }
  | { readonly kind: 'over' }

async function follow(on: ChannelNetwork, { hash, channels, at, block }: SentClaim): Promise<Followed> {
  const { chain } = await on.open()
  if (block !== undefined) {
    const look = await lookAtBlocks(chain, on.limits.confirmations, [block])
    const { kind } = look(block)
    if (kind === 'final') return { kind: 'over' }
    if (kind !== 'undone') return { kind: 'as before' }
    on.report(`a reorganization has undone the claim ${hash} of ${channels.length} channels`)
  }
  const seen = await chain.receipt(hash)
  if (seen.kind !== 'result') return { kind: block === undefined ? 'under way' : 'as before' }
  if (seen.result !== null) {
    // Both when it has succeeded and when it has not, the chain says what is claimed.
    if (!(await refreshAll(on, channels))) return { kind: 'under way' }
    const { block: number, blockHash, succeeded } = seen.result
    return succeeded
      ? { kind: 'mined', block: { number: Number(number), hash: blockHash } }
      : { kind: 'over' }
  }
  const known = await chain.knows(hash)
  if (known.kind !== 'result' || known.result) return { kind: 'under way' }
  if (block === undefined && on.clock.now() - at < UNSENT_MS) return { kind: 'under way' }
  // Where it was replaced at a higher fee, the channels show it.
  return (await refreshAll(on, channels)) ? { kind: 'over' } : { kind: 'under way' }
}

async function refreshAll(on: ChannelNetwork, channels: readonly ChannelId[]): Promise<boolean> {
  const read = await Promise.all(channels.map((id) => refresh(on, id)))
  return read.every((mirror) => mirror !== undefined)
}

/** A refund whose outcome nobody has learned: the nonce of the chain says whether it was carried out. */
async function lookAtRefund(on: ChannelNetwork, id: ChannelId, { refund }: ChannelAccount): Promise<void> {
  if (refund === undefined || on.clock.now() - refund.at < REFUND_LOOK_MS) return
  const mirror = await refresh(on, id)
  if (mirror === undefined) return
  const isDone = BigInt(mirror.refundNonce) > BigInt(refund.nonce)
  if (isDone || on.clock.now() - refund.at > GIVEN_UP_MS) await endRefund(on, id, undefined)
}

/** Until then, the request that has asked for it may still be waiting. */
const REFUND_LOOK_MS = 60_000

import type { TemplateContext } from '../engine/documents/template.ts'
import type { ChannelBalance } from '../engine/x402/batch-settlement-evm/channel-balances.ts'
import { elapsed, exactAmount, grouped, moment, networkTitle, shortened } from './wording.ts'

/** Channels that a page shows one by one. */
const SHOWN = 50

/** What the channels of each network owe, for each token. */
export function channelsByNetwork(channels: readonly ChannelBalance[], now: number): TemplateContext[] {
  const groups = new Map<string, { readonly first: ChannelBalance; readonly all: ChannelBalance[] }>()
  for (const each of channels) {
    const name = `${each.network} ${each.token}`
    const group = groups.get(name) ?? { first: each, all: [] }
    groups.set(name, group)
    group.all.push(each)
  }
  return Array.from(groups.values(), ({ first: { network, token }, all }) => {
    const sum = (count: (each: ChannelBalance) => bigint): bigint =>
      all.reduce((total, each) => total + count(each), 0n)
    const closing = all.filter(({ withdrawal }) => withdrawal !== undefined)
    const withdrawn = sum(({ withdrawal }) => withdrawal?.amount ?? 0n)
    return {
      network: networkTitle(network),
      id: network,
      channels: grouped(all.length),
      unclaimed: exactAmount(
        sum(({ unclaimed }) => unclaimed),
        network,
        token,
      ),
      since: ageOf(earliest(all.map(({ unclaimedSince }) => unclaimedSince)), now),
      lastClaim: momentOf(latest(all.map(({ claimedAt }) => claimedAt))),
      isClosing: closing.length > 0,
      withdrawals:
        closing.length === 0
          ? 'none'
          : `${grouped(closing.length)}, of ${exactAmount(withdrawn, network, token)}`,
    }
  })
}

/** The channels that owe most, those that are being withdrawn from or cannot be claimed first. */
export function channelRows(channels: readonly ChannelBalance[], now: number): TemplateContext[] {
  return channels
    .toSorted((one, other) => Number(isTroubled(other)) - Number(isTroubled(one)) || compare(one, other))
    .slice(0, SHOWN)
    .map(({ id, network, token, payer, unclaimed, unclaimedSince, claimedAt, withdrawal, setAside }) => ({
      id: shortened(id),
      network: networkTitle(network),
      payer: shortened(payer),
      unclaimed: exactAmount(unclaimed, network, token),
      since: ageOf(unclaimedSince, now),
      lastClaim: momentOf(claimedAt),
      state: setAside !== undefined ? 'down' : withdrawal !== undefined ? 'degraded' : 'up',
      words: setAside ?? (withdrawal === undefined ? 'open' : 'withdrawing'),
      withdrawn: withdrawal === undefined ? '' : exactAmount(withdrawal.amount, network, token),
      ends: momentOf(withdrawal?.endsAt),
    }))
}

/** Money that is lost unless it is claimed in time. */
export function isAtRisk({ unclaimed, withdrawal, setAside }: ChannelBalance): boolean {
  return unclaimed > 0n && (withdrawal !== undefined || setAside !== undefined)
}

function isTroubled({ withdrawal, setAside }: ChannelBalance): boolean {
  return withdrawal !== undefined || setAside !== undefined
}

function compare({ unclaimed: one }: ChannelBalance, { unclaimed: other }: ChannelBalance): number {
  return one === other ? 0 : one < other ? 1 : -1
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce(
    (first, each) => (each === undefined || (first ?? each) < each ? first : each),
    undefined,
  )
}

function latest(times: readonly (number | undefined)[]): number | undefined {
  return times.reduce((last, each) => (each === undefined || (last ?? each) > each ? last : each), undefined)
}

function ageOf(since: number | undefined, now: number): string {
  return since === undefined ? '' : elapsed(now - since)
}

function momentOf(ms: number | undefined): TemplateContext | '' {
  return ms === undefined ? '' : moment(ms)
}

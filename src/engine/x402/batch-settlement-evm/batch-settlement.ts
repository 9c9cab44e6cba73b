import { isAddress, toChecksum, type Address } from '../../base/address.ts'
import type { Every } from '../../base/every.ts'
import type { Network } from '../../base/networks.ts'
import { CANNOT_LOOK } from '../../chains/evm/finality.ts'
import { evmPayerKey } from '../../chains/evm/payer-key.ts'
import { addressOfKey } from '../../chains/evm/signature.ts'
import { DistributedLock } from '../../ledger/distributed-lock.ts'
import { SETTLEMENT_FAILED } from '../../payment/settlement.ts'
import type { AcceptedNetwork } from '../exact-evm/accepted-network.ts'
import type { SettlementContext } from '../exact-evm/settlement-context.ts'
import { toAtomic } from '../requirements.ts'
import type { Scheme, SchemeContext, X402Terms } from '../scheme.ts'
import { channelPayment } from './channel-payment.ts'
import { readChannelPayload } from './channel-payload.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { channelOffer } from './channel-offer.ts'
import { ChannelWatch, readWatched } from './channel-watch.ts'
import { claimChannels, type ClaimRound, type ClaimScope } from './claims.ts'
import { followDeposits } from './follow-deposits.ts'
import { refundAction } from './refund.ts'
import { responseOf, SCHEME } from './wire.ts'

interface ChannelSettings extends Pick<SchemeContext, 'ledger' | 'owner' | 'now' | 'sleep' | 'report'> {
  readonly every: Every
  /** Sign claims and refunds. The first is named in offers; the others are kept for the channels that name them. */
  readonly authorizerKeys: readonly `0x${string}`[]
  /** Node and gas accounts of a network; undefined: this process has none. */
  readonly settlementOf: (network: Network) => (() => Promise<Omit<SettlementContext, 'limits'>>) | undefined
}

interface ChannelNetworks {
  /** In order of preference: the first is offered. */
  readonly offered: readonly AcceptedNetwork[]
  /** Every network whose channels are served and claimed. */
  readonly reachable: readonly AcceptedNetwork[]
}

/** Scheme `batch-settlement` on EVM: a scheme that can be asked to claim. */
export interface ChannelScheme extends Scheme {
  /** Claims now. */
  claim(scope: ClaimScope): Promise<readonly ClaimRound[]>
}

/** How long a claim of another process is waited for, when an operator asks for one. */
const PATIENCE_MS = 60_000

/**
 * Opens scheme `batch-settlement` once per process: payers deposit into channels and sign a voucher for each call, which
 * are claimed later, for many calls at once.
 */
export function openChannels(
  settings: ChannelSettings,
): (terms: X402Terms, networks: ChannelNetworks) => ChannelScheme {
  const authorizers = new Map<Address, `0x${string}`>(
    settings.authorizerKeys.flatMap((key) => {
      const address = addressOfKey(key)
      return address === undefined ? [] : [[address, key]]
    }),
  )
  const watches = new Map<string, ChannelWatch>()
  const watchOf = (on: ChannelNetwork): ChannelWatch => {
    const watch = watches.get(on.network.id) ?? new ChannelWatch(on)
    watches.set(on.network.id, watch)
    return watch
  }
  return (terms, { offered, reachable }) => {
    const [present = ''] = authorizers.keys()
    const all = new Map(
      reachable.flatMap((accepted) => {
        const on = channelNetworkOf(settings, authorizers, terms, accepted)
        return on === undefined
          ? []
          : [[on.network.id, { on, offer: channelOffer(accepted, present, on.terms) }] as const]
      }),
    )
    const offers = offered.flatMap(({ network }) => all.get(network.id)?.offer ?? []).slice(0, 1)
    const claim = (on: ChannelNetwork, scope: ClaimScope): Promise<ClaimRound | undefined> =>
      claimAlone(settings, watchOf(on), on, scope)
    return {
      name: SCHEME,
      takesActions: true,
      offers,
      knows: (network) => all.has(network),
      payerKey: evmPayerKey,
      decode: (payload) => {
        const found = all.get(payload.accepted.network)
        if (found === undefined) throw new Error(`${payload.accepted.network} has no channels here`)
        const read = readChannelPayload(payload)
        if (read.kind === 'malformed') return read
        const { on, offer } = found
        return read.payload.type === 'refund'
          ? { kind: 'action', action: refundAction(on, read.payload) }
          : { kind: 'payment', payment: channelPayment(on, offer, { ...payload, payload: read.payload }) }
      },
      // A charge is in one commit with its receipt: without one, nothing was charged.
      resolve: async () => SETTLEMENT_FAILED,
      lookAtBlocks: async () => CANNOT_LOOK,
      responseOf,
      background: async () => {
        // The fault of one network does not keep the others from being claimed.
        const rounds = await Promise.allSettled(Array.from(all.values(), ({ on }) => claim(on, 'due')))
        for (const round of rounds) if (round.status === 'rejected') throw round.reason
      },
      claim: async (scope) => {
        const rounds: ClaimRound[] = []
        for (const { on } of all.values()) {
          const round = await claim(on, scope)
          if (round !== undefined) rounds.push(round)
        }
        return rounds
      },
    }
  }
}

/** Undefined where this process has no accounts, or nobody signs its claims. */
function channelNetworkOf(
  { ledger, now, sleep, report, settlementOf }: ChannelSettings,
  authorizers: ChannelNetwork['authorizers'],
  { channels, limits }: X402Terms,
  { network, payTo }: AcceptedNetwork,
): ChannelNetwork | undefined {
  const open = settlementOf(network)
  if (open === undefined || authorizers.size === 0 || !isAddress(payTo)) return undefined
  const { decimals } = network.token
  return {
    network,
    payTo: toChecksum(payTo),
    limits: limits[network.id] ?? network.limits,
    terms: {
      withdrawDelay: channels.withdrawDelay,
      leastDeposit: toAtomic(channels.leastDeposit, decimals),
      depositBy: channels.depositBy,
      claimAfter: toAtomic(channels.claimAfter, decimals),
      claimEvery: channels.claimEvery,
      mostUnclaimed: toAtomic(channels.mostUnclaimed, decimals),
    },
    authorizers,
    ledger,
    clock: { now, sleep },
    open,
    watched: () => readWatched({ ledger, network }),
    report: (line) => report(`${network.title}: ${line}`),
  }
}

const RENEWAL_MS = 5_000

/** Claims the channels of a network, in one process at a time; undefined while another one does. */
async function claimAlone(
  { ledger, owner, now, sleep, every }: ChannelSettings,
  watch: ChannelWatch,
  on: ChannelNetwork,
  scope: ClaimScope,
): Promise<ClaimRound | undefined> {
  const lock = new DistributedLock({ ledger, owner, now, sleep, name: `channels:${on.network.id}` })
  if ((await lock.acquire(scope === 'all' ? PATIENCE_MS : 0)) === undefined) return undefined
  const stop = every(RENEWAL_MS, () => void lock.extend(RENEWAL_MS * 2).catch(() => undefined))
  try {
    await watch.look()
    await followDeposits(on)
    return await claimChannels(on, scope)
  } finally {
    stop()
    await lock.release(undefined)
  }
}

import type { Ledger } from '../../ledger/ledger.ts'
import { isChannelId, parseAccount, PREFIX } from './channel-account.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'
import { readMirror, type ChannelMirror } from './channel-mirror.ts'

/** Where one channel stands. Amounts are in atomic units. */
export interface ChannelBalance {
  /** CAIP-2. */
  readonly network: string
  readonly id: ChannelId
  readonly payer: string
  /** EIP-55. */
  readonly token: string
  readonly deposited: bigint
  readonly charged: bigint
  readonly claimed: bigint
  readonly unclaimed: bigint
  /** Since when money is unclaimed, in milliseconds since the epoch. */
  readonly unclaimedSince: number | undefined
  /** When this service has claimed it last, in milliseconds since the epoch. */
  readonly claimedAt: number | undefined
  /** What its payer is withdrawing from it, and from when on that can be taken out, in milliseconds since the epoch. */
  readonly withdrawal: { readonly amount: bigint; readonly endsAt: number } | undefined
  /** Why it cannot be claimed. */
  readonly setAside: string | undefined
}

/** Every channel that was ever used, on every network, in no order. */
export async function listChannelBalances(
  ledger: Pick<Ledger, 'states'>,
): Promise<readonly ChannelBalance[]> {
  const balances: ChannelBalance[] = []
  const prefix = `${PREFIX}account:`
  for await (const state of ledger.states.list(prefix)) {
    const { account } = parseAccount(state)
    const place = state.name.lastIndexOf(':')
    const id = state.name.slice(place + 1)
    if (account === undefined || !isChannelId(id)) continue
    const network = state.name.slice(prefix.length, place)
    const { mirror } = await readMirror(ledger, network, id)
    const [charged, claimed] = [BigInt(account.charged), BigInt(mirror?.claimed ?? 0)]
    const unclaimed = charged > claimed ? charged - claimed : 0n
    balances.push({
      network,
      id,
      payer: account.config.payer,
      token: account.config.token,
      deposited: BigInt(mirror?.balance ?? 0),
      charged,
      claimed,
      unclaimed,
      unclaimedSince: unclaimed === 0n ? undefined : account.unclaimedSince,
      claimedAt: mirror?.claimedAt,
      withdrawal: withdrawalOf(mirror, account.config),
      setAside: account.setAside?.reason,
    })
  }
  return balances
}

function withdrawalOf(
  mirror: ChannelMirror | undefined,
  { withdrawDelay }: ChannelConfig,
): ChannelBalance['withdrawal'] {
  if (mirror === undefined || mirror.withdrawalAt === 0) return undefined
  return { amount: BigInt(mirror.withdrawing), endsAt: (mirror.withdrawalAt + withdrawDelay) * 1000 }
}

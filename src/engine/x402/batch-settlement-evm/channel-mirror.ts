import type { Ledger } from '../../ledger/ledger.ts'
import type { SchemeState } from '../../ledger/scheme-state.ts'
import { COPY_PREFIX } from './channel-account.ts'
import type { ChannelId } from '../../base/channel-config.ts'

/** A channel as the chain has shown it. Amounts are in atomic units. */
export interface ChannelMirror {
  /** Deposited and not given back. */
  readonly balance: string
  /** Claimed in all. */
  readonly claimed: string
  /** What its payer is withdrawing. */
  readonly withdrawing: string
  /** When the withdrawal was started, in seconds since the epoch; 0: there is none. */
  readonly withdrawalAt: number
  readonly refundNonce: string
  /** When it was read, in milliseconds since the epoch; 0: it has changed since, and must be read again. */
  readonly readAt: number
  /** When this service has claimed it last, in milliseconds since the epoch. */
  readonly claimedAt?: number
}

export interface StoredMirror {
  readonly state: SchemeState
  readonly mirror: ChannelMirror | undefined
}

export async function readMirror(
  { states }: Pick<Ledger, 'states'>,
  network: string,
  id: ChannelId,
): Promise<StoredMirror> {
  const state = await states.get(`${COPY_PREFIX}mirror:${network}:${id}`)
  if (state.text === '') return { state, mirror: undefined }
  const mirror: ChannelMirror = JSON.parse(state.text)
  return { state, mirror }
}

/** Tries of a change that another process keeps overtaking. */
const TRIES = 20

/** Changes a mirror from what it is then; `change` gets undefined when there is none, and gives undefined to leave it. */
export async function updateMirror(
  ledger: Pick<Ledger, 'states' | 'commit'>,
  network: string,
  id: ChannelId,
  change: (mirror: ChannelMirror | undefined) => ChannelMirror | undefined,
): Promise<ChannelMirror | undefined> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { state, mirror } = await readMirror(ledger, network, id)
    const next = change(mirror)
    if (next === undefined) return mirror
    if (await ledger.commit([], [{ previous: state, next: JSON.stringify(next) }])) return next
  }
  throw new Error(`the mirror of channel ${id} is changed by others all the time`)
}

/** From now on it is read from the chain before it is trusted. */
export async function distrustMirror(
  ledger: Pick<Ledger, 'states' | 'commit'>,
  network: string,
  id: ChannelId,
): Promise<void> {
  await updateMirror(ledger, network, id, (mirror) => mirror && { ...mirror, readAt: 0 })
}

/** What can be charged in all: what is being withdrawn counts as gone. */
export function usable({ balance, withdrawing }: Pick<ChannelMirror, 'balance' | 'withdrawing'>): bigint {
  return BigInt(balance) - BigInt(withdrawing)
}

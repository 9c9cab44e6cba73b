import type { JsonObject } from '../../base/json.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { COPY, type SchemeState, type SchemeStateChange } from '../../ledger/scheme-state.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'

/** What was bought through a channel: changed by the purchases and refunds of the channel alone. */
export interface ChannelAccount {
  readonly config: ChannelConfig
  /** Charged in all, in atomic units. */
  readonly charged: string
  /** A voucher that covers what was charged. Undefined before the first charge. */
  readonly voucher?: { readonly ceiling: string; readonly signature: `0x${string}` }
  /** Number of charges, those of nothing included. */
  readonly charges: number
  /** The last charge: its voucher, the call it has paid for, and the record of that. */
  readonly last?: { readonly ceiling: string; readonly call: string; readonly key: string }
  /** Whether the payer has signed a deposit for this channel: anybody may fund a channel in the name of another. */
  readonly isProven: boolean
  /** Since when money is unclaimed, in milliseconds since the epoch. */
  readonly unclaimedSince?: number
  readonly refund?: ChannelRefund
  /** Why the contract does not take its claim, and since when, in milliseconds since the epoch. */
  readonly setAside?: { readonly reason: string; readonly at: number }
}

/** The last refund of a channel. */
export interface ChannelRefund {
  /** What has asked for it: a copy gets the same result. */
  readonly request: string
  /** Atomic units. */
  readonly amount: string
  /** The nonce with which it was signed: once the chain has another one, it was carried out. */
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Undefined while its outcome is not known. */
  readonly result?: JsonObject
}

export interface StoredAccount {
  readonly state: SchemeState
  /** Undefined when nothing was ever bought through the channel. */
  readonly account: ChannelAccount | undefined
}

/** Every name that the scheme uses begins so. */
export const PREFIX = 'batch-settlement:'
/** Names of what is read from the chain begin so. */
export const COPY_PREFIX = `batch-settlement${COPY}`

export function accountName(network: string, id: ChannelId): string {
  return `${PREFIX}account:${network}:${id}`
}

export async function readAccount(
  { states }: Pick<Ledger, 'states'>,
  network: string,
  id: ChannelId,
): Promise<StoredAccount> {
  return parseAccount(await states.get(accountName(network, id)))
}

/** Every channel of a network through which something was bought. */
export async function* listAccounts(
  { states }: Pick<Ledger, 'states'>,
  network: string,
): AsyncGenerator<{
  readonly id: ChannelId
  readonly state: SchemeState
  readonly account: ChannelAccount
}> {
  const prefix = `${PREFIX}account:${network}:`
  for await (const state of states.list(prefix)) {
    const { account } = parseAccount(state)
    const id = state.name.slice(prefix.length)
    if (account !== undefined && isChannelId(id)) yield { id, state, account }
  }
}

export function changeAccount({ state }: StoredAccount, account: ChannelAccount): SchemeStateChange {
  return { previous: state, next: JSON.stringify(account) }
}

/**
 * What was charged in all: what the chain has claimed was charged, also when the ledger has lost it.
 */
export function chargedOf(
  account: ChannelAccount | undefined,
  { claimed }: { readonly claimed: string },
): bigint {
  const [recorded, known] = [BigInt(account?.charged ?? 0), BigInt(claimed)]
  return recorded > known ? recorded : known
}

/** What a refund that is under way takes, in atomic units. */
export function reserved(account: ChannelAccount | undefined): bigint {
  const refund = account?.refund
  return refund === undefined || refund.result !== undefined ? 0n : BigInt(refund.amount)
}

export function parseAccount(state: SchemeState): StoredAccount {
  if (state.text === '') return { state, account: undefined }
  const account: ChannelAccount = JSON.parse(state.text)
  return { state, account }
}

export function isChannelId(text: string | undefined): text is ChannelId {
  return text !== undefined && /^0x[0-9a-f]{64}$/.test(text)
}

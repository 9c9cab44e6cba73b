import type { BlockReference } from '../../ledger/payment-record.ts'
import type { SchemeState } from '../../ledger/scheme-state.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import { PREFIX } from './channel-account.ts'
import type { ChannelNetwork } from './channel-network.ts'

/** A claim in the ledger, from before it is sent until its block is final. */
export interface SentClaim {
  readonly hash: string
  readonly channels: readonly ChannelId[]
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Undefined while no block contains it. */
  readonly block?: BlockReference
  /** It is part of a refund: what it claims is paid out with the next claim. */
  readonly isRefund?: true
}

function claimName(network: string, hash: string): string {
  return `${PREFIX}claim:${network}:${hash}`
}

/** Keeps a claim before it is sent. */
export async function recordClaim({ ledger, network }: ChannelNetwork, claim: SentClaim): Promise<void> {
  const previous = await ledger.states.get(claimName(network.id, claim.hash))
  if (!(await ledger.commit([], [{ previous, next: JSON.stringify(claim) }])))
    throw new Error('a claim was recorded by two processes')
}

export async function readClaim(
  { ledger, network }: ChannelNetwork,
  hash: string,
): Promise<{ readonly state: SchemeState; readonly claim: SentClaim | undefined }> {
  return parse(await ledger.states.get(claimName(network.id, hash)))
}

function parse(state: SchemeState): { readonly state: SchemeState; readonly claim: SentClaim | undefined } {
  if (state.text === '') return { state, claim: undefined }
  const claim: SentClaim = JSON.parse(state.text)
  return { state, claim }
}

/** Every claim that is not final. */
export async function* listClaims({
  ledger,
  network,
}: ChannelNetwork): AsyncGenerator<{ readonly state: SchemeState; readonly claim: SentClaim }> {
  for await (const state of ledger.states.list(claimName(network.id, ''))) {
    const { claim } = parse(state)
    if (claim !== undefined) yield { state, claim }
  }
}

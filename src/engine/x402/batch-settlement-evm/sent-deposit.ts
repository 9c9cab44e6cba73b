import type { BlockReference } from '../../ledger/payment-record.ts'
import type { SchemeState } from '../../ledger/scheme-state.ts'
import { PREFIX } from './channel-account.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'
import type { ChannelNetwork } from './channel-network.ts'
import type { DepositAuthorization } from './typed-data.ts'

/** A channel with a deposit that its payer has signed. */
export interface Deposit {
  readonly id: ChannelId
  readonly config: ChannelConfig
  readonly signed: DepositAuthorization
}

/**
 * A deposit in the ledger, from before it is sent until its block is final: a reorganization may undo it when calls
 * were answered already for what it has brought.
 */
export interface SentDeposit extends Deposit {
  readonly hash: string
  /** Undefined while no block contains it. */
  readonly block?: BlockReference
  /** A block has contained it: its payer counts on it, whatever the channel owes. */
  readonly isUndone?: true
}

/** Keeps a deposit: before it is sent in a transaction, and when that is in a block. */
export async function recordDeposit(
  { ledger, network }: ChannelNetwork,
  { id, config, signed }: Deposit,
  sent: Pick<SentDeposit, 'hash' | 'block' | 'isUndone'>,
): Promise<void> {
  const previous = await ledger.states.get(depositName(network.id, sent.hash))
  const next: SentDeposit = { id, config, signed, ...sent }
  await ledger.commit([], [{ previous, next: JSON.stringify(next) }])
}

/** Every deposit that is not final. */
export async function* listDeposits({
  ledger,
  network,
}: ChannelNetwork): AsyncGenerator<{ readonly state: SchemeState; readonly sent: SentDeposit }> {
  for await (const state of ledger.states.list(depositName(network.id, ''))) {
    if (state.text === '') continue
    const sent: SentDeposit = JSON.parse(state.text)
    yield { state, sent }
  }
}

function depositName(network: string, hash: string): string {
  return `${PREFIX}deposit:${network}:${hash}`
}

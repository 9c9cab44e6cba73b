import { CANNOT_LOOK, lookAtBlocks, type BlockLook } from '../../chains/evm/finality.ts'
import type { BlockReference } from '../../ledger/payment-record.ts'
import type { SchemeState } from '../../ledger/scheme-state.ts'
import { changeAccount, readAccount } from './channel-account.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { isTaken, sendDeposit } from './deposit.ts'
import { refresh } from './refresh-mirror.ts'
import { listDeposits, recordDeposit, type Deposit, type SentDeposit } from './sent-deposit.ts'

/** Looks at the deposits that are not final, and brings in again what a reorganization has undone. */
export async function followDeposits(on: ChannelNetwork): Promise<void> {
  const kept: { readonly state: SchemeState; readonly sent: SentDeposit }[] = []
  for await (const each of listDeposits(on)) kept.push(each)
  const blocks = kept.flatMap(({ sent }) => sent.block ?? [])
  const look = blocks.length === 0 ? CANNOT_LOOK : await lookAt(on, blocks)
  for (const { state, sent } of kept) {
    const followed = await follow(on, sent, look)
    if (followed === undefined) continue
    const next = followed === 'over' ? undefined : JSON.stringify(followed)
    await on.ledger.commit([], [{ previous: state, next }])
  }
}

async function lookAt(
  { open, limits }: ChannelNetwork,
  blocks: readonly BlockReference[],
): Promise<BlockLook> {
  const { chain } = await open()
  return lookAtBlocks(chain, limits.confirmations, blocks)
}

/** Undefined: as before. */
async function follow(
  on: ChannelNetwork,
  deposit: SentDeposit,
  look: BlockLook,
): Promise<SentDeposit | 'over' | undefined> {
  const { chain } = await on.open()
  const { block, ...sent } = deposit
  const { hash, id, signed } = sent
  if (block !== undefined) {
    const { kind } = look(block)
    if (kind === 'final') return 'over'
    if (kind !== 'undone') return undefined
    on.report(`a reorganization has undone the deposit ${hash} into channel ${id}`)
    return sent
  }
  const seen = await chain.receipt(hash)
  if (seen.kind !== 'result') return undefined
  if (seen.result !== null) {
    const { succeeded, block: number, blockHash } = seen.result
    if (!succeeded) return 'over'
    await goOn(on, deposit)
    return { ...sent, block: { number: Number(number), hash: blockHash } }
  }
  const known = await chain.knows(hash)
  if (known.kind !== 'result' || known.result) return undefined
  const hasExpired = on.clock.now() >= Number(signed.validBefore) * 1000
  // A transaction at a higher fee has taken its place, or the payer has sent it.
  if (await isTaken(on, deposit)) return hasExpired ? 'over' : undefined
  const isNeeded = await owesMore(on, deposit)
  if (isNeeded === undefined) return undefined
  if (!hasExpired) return isNeeded ? bringIn(on, deposit) : undefined
  if (isNeeded)
    on.report(`the deposit ${hash} into channel ${id} has expired unused: what it has paid for is lost`)
  return 'over'
}

/** Whether a channel was charged more than it holds; undefined when the node does not say. */
async function owesMore(on: ChannelNetwork, { id }: Deposit): Promise<boolean | undefined> {
  const mirror = await refresh(on, id)
  const { account } = await readAccount(on.ledger, on.network.id, id)
  return mirror && BigInt(account?.charged ?? 0) > BigInt(mirror.balance)
}

/** Sends a deposit again: its payer’s signature is good for one. */
async function bringIn(on: ChannelNetwork, deposit: Deposit): Promise<'over' | undefined> {
  let hash: string | undefined
  const outcome = await sendDeposit(on, deposit, async (transaction) => {
    hash = transaction.hash
    await recordDeposit(on, deposit, hash)
  })
  if (outcome.kind === 'mined') await goOn(on, deposit)
  // It is followed under its new name.
  return hash === undefined ? undefined : 'over'
}

/** The channel holds its money again, and can be claimed. */
async function goOn(on: ChannelNetwork, { id }: Deposit): Promise<void> {
  await refresh(on, id)
  const stored = await readAccount(on.ledger, on.network.id, id)
  if (stored.account?.setAside === undefined) return
  const { setAside: _setAside, ...account } = stored.account
  await on.ledger.commit([], [changeAccount(stored, account)])
}

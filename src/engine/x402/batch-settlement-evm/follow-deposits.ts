import { lookAtBlocks } from '../../chains/evm/finality.ts'
import { changeAccount, readAccount } from './channel-account.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { isTaken, sendDeposit } from './deposit.ts'
import { refresh } from './mirrored.ts'
import { listDeposits, recordDeposit, type Deposit, type SentDeposit } from './sent-deposit.ts'

/** Looks at the deposits that are not final, and brings in again what a reorganization has undone. */
export async function followDeposits(on: ChannelNetwork): Promise<void> {
  for await (const { state, sent } of listDeposits(on)) {
    const followed = await follow(on, sent)
    if (followed === undefined) continue
    const next = followed === 'over' ? undefined : JSON.stringify(followed)
    await on.ledger.commit([], [{ previous: state, next }])
  }
}

/** Undefined: as before. */
async function follow(on: ChannelNetwork, deposit: SentDeposit): Promise<SentDeposit | 'over' | undefined> {
  const { chain } = await on.open()
  const { block, ...sent } = deposit
  const { hash, id, signed } = sent
  if (block !== undefined) {
    const look = await lookAtBlocks(chain, on.limits.confirmations, [block])
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
  if (known.kind !== 'result' || known.result || (await isTaken(on, deposit))) return undefined
  const isNeeded = await owesMore(on, deposit)
  if (isNeeded === undefined) return undefined
  if (on.clock.now() < Number(signed.validBefore) * 1000) return isNeeded ? bringIn(on, deposit) : undefined
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

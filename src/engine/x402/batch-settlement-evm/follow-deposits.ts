import { CANNOT_LOOK, lookAtBlocks, type BlockLook } from '../../chains/evm/finality.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import type { BlockReference } from '../../ledger/payment-record.ts'
import type { SchemeState } from '../../ledger/scheme-state.ts'
import { changeAccount, readAccount } from './channel-account.ts'
import type { ChannelNetwork } from './channel-network.ts'
import { expiryOf, isTaken, sendDeposit } from './deposit.ts'
import { refresh } from './refresh-mirror.ts'
import { listDeposits, recordDeposit, type Deposit, type SentDeposit } from './sent-deposit.ts'

/** Looks at the deposits that are not final, and brings in again what a reorganization has undone. */
export async function followDeposits(on: ChannelNetwork): Promise<void> {
  const channels = new Map<ChannelId, { readonly state: SchemeState; readonly sent: SentDeposit }[]>()
  const blocks: BlockReference[] = []
  for await (const each of listDeposits(on)) {
    const { id, block } = each.sent
    if (block !== undefined) blocks.push(block)
    const earlier = channels.get(id)
    if (earlier === undefined) channels.set(id, [each])
    else earlier.push(each)
  }
  const look = blocks.length === 0 ? CANNOT_LOOK : await lookAt(on, blocks)
  // A signature may end while another deposit waits for its block. Those of one channel may be the same one twice.
  const followed = await Promise.allSettled(
    Array.from(channels.values(), async (deposits) => {
      for (const { state, sent } of deposits) {
        const found = await follow(on, sent, look)
        if (found === undefined) continue
        const next = found === 'over' ? undefined : JSON.stringify(found)
        await on.ledger.commit([], [{ previous: state, next }])
      }
    }),
  )
  for (const each of followed) if (each.status === 'rejected') throw each.reason
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
  const { block, ...rest } = deposit
  const { hash, id, signed } = deposit
  let sent: SentDeposit = rest
  if (block !== undefined) {
    const { kind } = look(block)
    if (kind === 'final') return 'over'
    if (kind !== 'undone') return undefined
    on.report(`a reorganization has undone the deposit ${hash} into channel ${id}`)
    sent = { ...rest, isUndone: true }
  }
  /** As it is to be kept when nothing else is known; undefined: as before. */
  const asNow = block === undefined ? undefined : sent
  const seen = await chain.receipt(hash)
  if (seen.kind !== 'result') return asNow
  if (seen.result?.succeeded === true) {
    const { block: number, blockHash } = seen.result
    await goOn(on, deposit)
    return { ...sent, block: { number: Number(number), hash: blockHash } }
  }
  // One that has failed changes nothing; another transaction of the same deposit may have been faster.
  if (seen.result === null) {
    const known = await chain.knows(hash)
    if (known.kind !== 'result' || known.result) return asNow
  }
  const hasExpired = on.clock.now() >= expiryOf(signed)
  // A transaction at a higher fee has taken its place, or the payer has sent it.
  if (await isTaken(on, deposit)) return hasExpired ? 'over' : asNow
  const mirror = await refresh(on, id)
  if (mirror === undefined) return asNow
  const { account } = await readAccount(on.ledger, on.network.id, id)
  const isOwed = BigInt(account?.charged ?? 0) > BigInt(mirror.balance)
  if (!hasExpired) return sent.isUndone === true || isOwed ? ((await bringIn(on, sent)) ?? asNow) : asNow
  if (isOwed)
    on.report(
      `the deposit ${hash} into channel ${id} has expired unused: what it has paid for is lost, unless its payer adds a deposit`,
    )
  return 'over'
}

/** Sends a deposit again: its payer’s signature is good for one. */
async function bringIn(
  on: ChannelNetwork,
  { isUndone, ...deposit }: SentDeposit,
): Promise<'over' | undefined> {
  let hash: string | undefined
  const outcome = await sendDeposit(on, deposit, async (transaction) => {
    hash = transaction.hash
    await recordDeposit(on, deposit, { hash, ...(isUndone && { isUndone }) })
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

import t from 'tap'
import { EARLIEST_LOOK_MS, LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import type { BlockStanding } from '../../../../src/engine/chains/evm/finality.ts'
import {
  firstLook,
  nextCheckAt,
  nextLook,
  paymentId,
  refundStateOf,
  situationOf,
} from '../../../../src/engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import type { Protocol } from '../../../../src/engine/payment/protocol.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import { followBlocks } from '../../../../src/engine/purchase/follow-blocks.ts'
import { type RecoveryDeps } from '../../../../src/engine/purchase/recovery.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import {
  AWAY,
  FAILED,
  KEY,
  leave,
  NOW,
  openShop,
  recoverAll,
  RECEIPT,
  SETTLED,
  TRANSACTION,
  UNKNOWN,
  type Shop,
} from '../../../support/scripted-protocol.ts'

const BLOCK = { number: 7, hash: '0xb7' }
const LATER = { number: 9, hash: '0xb9' }
const CHARGED = { receipt: { ...RECEIPT, block: BLOCK }, settledAt: NOW, lookAt: NOW, dispatch: TRANSACTION }
const REVERTED: Settlement = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'it has reverted' },
  block: BLOCK,
}
const REVERTED_LATER: Settlement = { ...REVERTED, block: LATER }
const SETTLED_LATER: Settlement = { kind: 'settled', receipt: { ...RECEIPT, block: LATER } }

/** Another process than the one that sells, and what it does to the chain. */
function openWatcher(shop: Shop, standing: BlockStanding['kind']) {
  const seen = { standing, resent: 0, resettled: 0, reports: new Array<string>() }
  const look = (): BlockStanding =>
    seen.standing === 'valid' ? { kind: 'valid', progress: 0.1 } : { kind: seen.standing }
  const protocol: Protocol = {
    ...shop.payment().protocol,
    lookAtBlocks: async () => look,
    resend: async () => {
      seen.resent += 1
    },
    resettle: async (_entry, journal) => {
      seen.resettled += 1
      await journal.record({ ...TRANSACTION, hash: '0x09', nonce: 9 })
      return SETTLED
    },
  }
  const deps: RecoveryDeps = {
    ...shop.deps,
    owner: 'watcher',
    protocols: () => [protocol],
    storeOf: () => undefined,
    report: (fault) => seen.reports.push(String(fault)),
  }
  const lookAgain = async (): Promise<void> => {
    await Promise.all(await followBlocks(deps, 'due'))
  }
  return { seen, deps, look: lookAgain, recover: () => recoverAll(deps) }
}

t.test('sends a charged payment again although a dead process holds it', async (t) => {
  const shop = await openShop(t)
  const record = await leave(shop, 'settled', { ...CHARGED, leaseUntil: NOW + LEASE_MS, due: NOW })
  const { seen, look } = openWatcher(shop, 'undone')
  await look()
  t.match(seen, { resent: 1, resettled: 0 }, 'the same bytes, and nothing else')
  t.strictSame(await shop.stored(), record, 'the process that holds it may be alive')
})

t.test('sends an undone payment again while a dead process carries it out', async (t) => {
  const shop = await openShop(t)
  const undone = { state: 'settled', transaction: '0x01' } as const
  await leave(shop, 'unknown', { undone, leaseUntil: NOW + LEASE_MS, due: NOW })
  const watcher = openWatcher(shop, 'undone')
  await watcher.recover()
  t.match(watcher.seen, { resent: 1, resettled: 0 })
})

t.test('sends an undone payment again soon after the process that found out has died', async (t) => {
  const shop = await openShop(t)
  const undone = { state: 'settled', transaction: '0x01' } as const
  const held = { ...makeRecord(KEY, NOW, 'dead'), dispatch: TRANSACTION, undone, attempts: 3 }
  const due = nextCheckAt({ ...held, state: 'unknown', validBefore: NOW + 20_000 })
  t.equal(due, NOW + EARLIEST_LOOK_MS)
  await leave(shop, 'unknown', { undone, leaseUntil: NOW + LEASE_MS, due })
  const watcher = openWatcher(shop, 'undone')
  shop.clock.now = NOW + EARLIEST_LOOK_MS
  await watcher.recover()
  t.match(watcher.seen, { resent: 1, resettled: 0 })
})

t.test('never sends a payment again while another process decides whether it is charged', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling', { leaseUntil: NOW + LEASE_MS, due: NOW })
  const watcher = openWatcher(shop, 'undone')
  await watcher.recover()
  t.match(watcher.seen, { resent: 0, resettled: 0 })
})

t.test(
  'looks at the block of a transaction of the payer several times, the sooner the younger it is',
  async (t) => {
    const validBefore = NOW + 18_000
    const dispatch = { kind: 'payer', hash: '0x01', raw: '0x02' } as const
    const record = { ...makeRecord(KEY, NOW), ...CHARGED, dispatch, validBefore }
    const looks: number[] = []
    for (let at = firstLook(record, BLOCK, NOW).lookAt; at !== undefined && at < validBefore;) {
      looks.push(at - NOW)
      at = nextLook(record, 0.1, at)
    }
    t.strictSame(looks, [3_000, 6_000, 12_000, 15_000])
  },
)

t.test(
  'sends an undone payment again although a node still shows it in its block, and looks again soon',
  async (t) => {
    const shop = await openShop(t)
    shop.bank.resolution = { kind: 'settled', receipt: CHARGED.receipt }
    const validBefore = NOW + 18_000
    await leave(shop, 'settled', { ...CHARGED, validBefore, due: NOW })
    const { seen, look } = openWatcher(shop, 'undone')
    await look()
    t.match(seen, { resent: 1, resettled: 0 })
    t.match(await shop.stored(), { receipt: CHARGED.receipt, lookAt: NOW + EARLIEST_LOOK_MS })
    shop.bank.resolution = SETTLED_LATER
    shop.clock.now += EARLIEST_LOOK_MS
    await look()
    t.match(seen, { resent: 1, resettled: 0 })
    t.match(await shop.stored(), { receipt: { block: LATER } })
  },
)

t.test('makes one new transaction when two processes find the same payment undone', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  await leave(shop, 'settled', { ...CHARGED, due: NOW })
  const [one, two] = [openWatcher(shop, 'undone'), openWatcher(shop, 'undone')]
  await Promise.all([one.look(), two.look()])
  t.equal(one.seen.resettled + two.seen.resettled, 1)
  t.match(await shop.stored(), { state: 'settled', receipt: RECEIPT })
})

t.test('finds another undone payment while the first waits for its block', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settled', { ...CHARGED, due: NOW })
  const { deps, look } = openWatcher(shop, 'undone')
  let mined = (): void => undefined
  const block = new Promise<void>((resolve) => (mined = resolve))
  const protocol: Protocol = {
    ...shop.payment().protocol,
    lookAtBlocks: async () => () => ({ kind: 'undone' }),
    resolve: async () => {
      await block
      return SETTLED
    },
  }
  const waiting = await followBlocks({ ...deps, protocols: () => [protocol] }, 'due')
  t.equal(waiting.length, 1)
  const other = { key: 'test:two', id: paymentId('test:two'), identifier: undefined }
  await leave(shop, 'settled', { ...CHARGED, ...other, due: NOW })
  await look()
  t.match(await shop.ledger.get('test:two'), { state: 'settled', receipt: RECEIPT })
  mined()
  await Promise.all(waiting)
})

t.test('looks at an undone payment several times before it expires', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = UNKNOWN
  const validBefore = NOW + 25_000
  await leave(shop, 'settled', { ...CHARGED, validBefore, due: NOW })
  const watcher = openWatcher(shop, 'undone')
  await watcher.look()
  const looks: number[] = []
  for (; shop.clock.now < validBefore; shop.clock.now += 500) {
    const before = shop.bank.resolved
    await watcher.recover()
    if (shop.bank.resolved > before) looks.push(shop.clock.now - NOW)
  }
  t.ok(looks.length >= 3, `after ${looks.join(', ')} ms`)
  t.ok((looks.at(-1) ?? 0) >= 25_000 - 2 * EARLIEST_LOOK_MS)
})

/** A buyer was told that nothing was charged, after the transaction had failed in a block. */
async function denied(shop: Shop): Promise<PaymentRecord> {
  shop.bank.settlements = [REVERTED]
  await shop.buy()
  const record = await shop.stored()
  if (record?.lookAt === undefined) throw new Error('it is looked at again')
  shop.clock.now = Math.max(record.lookAt, record.leaseUntil)
  return record
}

t.test('keeps a failed payment under look until the block that shows it is final', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [REVERTED]
  t.match(await shop.buy(), { kind: 'settlementFailed' })
  const record = await denied(await openShop(t))
  t.match(record, { state: 'voided', failedIn: BLOCK, answer: undefined })
  t.notHas(record, { dispatch: {} }, 'nothing that could move money is kept')
  t.equal(situationOf(record), 'void in an open block')
  const watcher = openWatcher(shop, 'valid')
  shop.clock.now = NOW + 20_000
  await watcher.look()
  t.match(await shop.stored(), { failedIn: BLOCK })
  watcher.seen.standing = 'final'
  shop.clock.now += 60_000
  await watcher.look()
  const left = await shop.stored()
  t.match(left, { state: 'voided' })
  t.notHas(left, { failedIn: BLOCK })
  shop.clock.now += 120_000
  await watcher.recover()
  t.equal(await shop.stored(), undefined, 'deleted like any other')
  t.match(watcher.seen, { resent: 0, resettled: 0, reports: [] })
})

t.test('owes the money back of a failed payment that is carried out after a reorganization', async (t) => {
  const shop = await openShop(t)
  await denied(shop)
  const watcher = openWatcher(shop, 'undone')
  shop.bank.resolution = UNKNOWN
  await watcher.look()
  t.match(await shop.stored(), { state: 'voided', failedIn: BLOCK }, 'it may still be carried out')
  shop.bank.resolution = SETTLED_LATER
  shop.clock.now += 30_000
  await watcher.look()
  const record = await shop.stored()
  t.match(record, { state: 'settled', receipt: { block: LATER }, refund: { kind: 'due' } })
  t.equal(record && refundStateOf(record, shop.clock.now), 'due')
  t.match(watcher.seen, {
    resent: 0,
    resettled: 0,
    reports: [/told that nothing was charged.*a refund is due/],
  })
})

t.test('follows a failed payment to the block that shows its failure again', async (t) => {
  const shop = await openShop(t)
  await denied(shop)
  const watcher = openWatcher(shop, 'undone')
  shop.bank.resolution = REVERTED_LATER
  await watcher.look()
  t.match(await shop.stored(), { state: 'voided', failedIn: LATER })
  t.equal(watcher.seen.resettled, 0)
})

t.test('does not forget a failed transaction when the same payment is tried again', async (t) => {
  const shop = await openShop(t)
  await denied(shop)
  shop.bank.simulate = { code: 'invalid_exact_evm_insufficient_balance', detail: 'poor' }
  t.match(await shop.buy(), { kind: 'refused' })
  t.match(await shop.stored(), { state: 'voided', failedIn: BLOCK, key: KEY })
})

t.test('keeps a failed transaction in mind when the network is away afterwards', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = REVERTED
  await leave(shop, 'settling')
  shop.bank.settlements = [AWAY]
  t.match(await shop.buy(), { kind: 'refused' })
  t.match(await shop.stored(), { state: 'fulfilled', failedIn: BLOCK })
})

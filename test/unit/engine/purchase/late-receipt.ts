import t from 'tap'
import { LedgerError } from '../../../../src/engine/base/errors.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { dateOf, type DailyTotal } from '../../../../src/engine/ledger/sales-totals.ts'
import { markReceived } from '../../../../src/engine/purchase/delivery-marks.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import {
  DEEP,
  FAILED,
  leave,
  NOW,
  openShop,
  recoverAll,
  RECEIPT,
  SETTLED,
  STORED,
  TRANSACTION,
  type Shop,
} from '../../../support/scripted-protocol.ts'
import { until } from '../../../support/until.ts'

const BLOCK = { number: 7, hash: '0xb7' }

/** A store that takes nothing while `away` says so. */
function failing(shop: Shop): { readonly deps: Shop['deps']; away: boolean } {
  const refuse = async (): Promise<never> => {
    throw new LedgerError('the store is away')
  }
  const { ledger } = shop.deps
  const state = { away: false }
  const unreliable: Ledger = {
    ...ledger,
    get: (key) => (state.away ? refuse() : ledger.get(key)),
    insert: (record) => (state.away ? refuse() : ledger.insert(record)),
    replace: (previous, next) => (state.away ? refuse() : ledger.replace(previous, next)),
    commit: (changes, states) => (state.away ? refuse() : ledger.commit(changes, states)),
  }
  return Object.assign(state, { deps: { ...shop.deps, ledger: unreliable } })
}

/** The store is away from the moment in which the money has moved. */
function losing(shop: Shop) {
  const store = failing(shop)
  const settled: Settlement = { kind: 'settled', receipt: { ...RECEIPT, block: BLOCK } }
  const payment = shop.payment({
    settle: async (_amount, journal) => {
      await journal.record(TRANSACTION)
      store.away = true
      return settled
    },
  })
  return { store, payment }
}

t.test('stores the receipt of an answered payment once the store is back', async (t) => {
  const shop = await openShop(t)
  const { store, payment } = losing(shop)
  t.match(await shop.buy({ payment }, store.deps), { kind: 'answered', answer: { value: { run: 1 } } })
  t.match(await shop.stored(), { state: 'settling' })
  store.away = false
  shop.clock.now += 15_000
  await until('the receipt is stored', async () => (await shop.stored())?.receipt !== undefined)
  const record = await shop.stored()
  t.match(record, { state: 'settled', receipt: { block: BLOCK }, answer: { size: 9 }, dispatch: TRANSACTION })
  t.ok((record?.lookAt ?? Infinity) <= shop.clock.now + 15_000, 'its block is looked at')
})

t.test('stores receipt and answer of work that was paid first', async (t) => {
  const shop = await openShop(t)
  const { store, payment } = losing(shop)
  t.match(await shop.buy({ route: DEEP, payment }, store.deps), { kind: 'answered' })
  store.away = false
  shop.clock.now += 15_000
  await until('both are stored', async () => (await shop.stored())?.answer !== undefined)
  t.match(await shop.stored(), { state: 'fulfilled', receipt: RECEIPT })
})

t.test('counts a sale whose receipt alone was lost on the way to the store', async (t) => {
  const shop = await openShop(t)
  const { ledger } = shop.deps
  let isLost = false
  const unreliable: Ledger = {
    ...ledger,
    replace: (previous, next) => {
      if (isLost || next.receipt === undefined) return ledger.replace(previous, next)
      isLost = true
      throw new LedgerError('the store has not answered')
    },
  }
  const deps = { ...shop.deps, ledger: unreliable }
  const store = { commit: async () => {}, abort: async () => {} }
  const outcome = await shop.buy({ store, run: async () => STORED }, deps)
  t.match(await shop.stored(), { state: 'settling' }, 'the end of the write is a change after the lost one')
  t.notHas(await shop.stored(), { pendingWrite: true })
  if (outcome.kind === 'answered') await markReceived(deps, outcome.record)
  t.match(await shop.stored(), { state: 'settling', pendingWrite: undefined }, 'a mark takes nothing back')
  shop.clock.now += 15_000
  await until('the receipt is stored', async () => (await shop.stored())?.receipt !== undefined)
  const sales: DailyTotal[] = []
  const today = dateOf(shop.clock.now)
  for await (const page of ledger.totals.read('sale', today, today)) sales.push(...page)
  t.match(sales, [{ payments: 1, amount: BigInt(RECEIPT.amount) }])
  t.match(await shop.stored(), { answer: { size: 9 } })
})

t.test('carries out again what was sent and lost, since its buyer may have the answer', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  await leave(shop, 'settling', { validBefore: NOW + 60_000 })
  let resettled = 0
  const { protocol } = shop.payment()
  const again = {
    ...protocol,
    resettle: async () => {
      resettled += 1
      return SETTLED
    },
  }
  await recoverAll({ ...shop.deps, protocols: () => [again], storeOf: () => undefined })
  t.equal(resettled, 1)
  t.match(await shop.stored(), { state: 'settled', receipt: RECEIPT, answer: { size: 9 } })
})

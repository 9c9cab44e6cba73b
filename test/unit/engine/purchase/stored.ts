import t from 'tap'
import type { HandlerCall, Store } from '../../../../src/engine/purchase/request.ts'
import {
  AWAY,
  DEEP,
  FAILED,
  openShop,
  POOR,
  SETTLED,
  STORED,
  UNKNOWN,
  type Shop,
} from '../../../support/scripted-protocol.ts'

/** A handler that stores: what it was asked, in order, with what had been charged by then. */
function openStore(shop: Shop) {
  const told: string[] = []
  const note = (what: string, payment: string): void => {
    told.push(`${what} ${payment.slice(0, 4)} ${shop.bank.charges}`)
  }
  const store: Store = {
    commit: async (payment) => note('commit', payment),
    abort: async (payment) => note('abort', payment),
  }
  const run = async ({ payment }: HandlerCall) => {
    note('prepare', payment)
    return STORED
  }
  return { told, store, run }
}

t.test('keeps what a buyer stores once it is paid for', async (t) => {
  const shop = await openShop(t)
  const { told, store, run } = openStore(shop)
  t.match(await shop.buy({ run, store }), { kind: 'answered' })
  t.strictSame(told, ['prepare pay_ 0', 'commit pay_ 1'])
  t.notHas(await shop.stored(), { pendingWrite: true })
  t.match(await shop.buy({ run, store }), { kind: 'answered' })
  t.equal(told.length, 2, 'the same payment stores nothing again')
})

t.test('removes what was stored without payment', async (t) => {
  const shop = await openShop(t)
  const { told, store, run } = openStore(shop)
  shop.bank.simulate = POOR
  await shop.buy({ run, store })
  t.strictSame(told, [], 'nothing was begun')
  shop.bank.simulate = undefined
  shop.bank.settlements = [FAILED, SETTLED]
  t.match(await shop.buy({ run, store }), { kind: 'settlementFailed' })
  t.strictSame(told, ['prepare pay_ 0', 'abort pay_ 0'])
  t.match(await shop.buy({ run, store }), { kind: 'answered' })
  t.strictSame(told.slice(2), ['prepare pay_ 0', 'commit pay_ 1'])
})

t.test('aborts the pending write of a handler that fails in the middle', async (t) => {
  for (const route of [undefined, DEEP]) {
    const shop = await openShop(t)
    const { told, store } = openStore(shop)
    const run = () => Promise.reject(new Error('broken'))
    await shop.buy({ run, store, ...(route === undefined ? {} : { route }) })
    t.strictSame(told, [`abort pay_ ${shop.bank.charges}`])
  }
})

t.test('leaves a write pending while its payment is unknown', async (t) => {
  const shop = await openShop(t)
  const { told, store, run } = openStore(shop)
  shop.bank.settlements = [UNKNOWN]
  await shop.buy({ run, store })
  t.match(await shop.stored(), { state: 'unknown', pendingWrite: true })
  await shop.buy({ run, store })
  t.strictSame(told, ['prepare pay_ 0', 'commit pay_ 0'])
  const away = await openShop(t)
  const other = openStore(away)
  away.bank.settlements = [AWAY, SETTLED]
  await away.buy(other)
  await away.buy(other)
  t.strictSame(other.told, ['prepare pay_ 0', 'commit pay_ 1'])
})

t.test('answers although keeping the write has to be tried again', async (t) => {
  const shop = await openShop(t)
  const { run } = openStore(shop)
  const store: Store = {
    commit: () => Promise.reject(new Error('away')),
    abort: () => Promise.reject(new Error('away')),
  }
  t.match(await shop.buy({ run, store }), { kind: 'answered' })
  t.match(await shop.stored(), { state: 'settled', pendingWrite: true }, 'recovery goes on')
})

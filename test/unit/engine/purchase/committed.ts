import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { readAnswer } from '../../../../src/engine/ledger/answers.ts'
import type { CommittedPayment } from '../../../../src/engine/payment/payment.ts'
import { KEY, openShop, RECEIPT, STORED, type Shop } from '../../../support/scripted-protocol.ts'
import { until } from '../../../support/until.ts'

const CHANNEL = 'channel'
const BROKEN = new Error('the work has failed')

/** A payment that is charged in the ledger, to a channel whose state is the sum of its charges. */
function voucher({ payment, ledger }: Shop, key = KEY): CommittedPayment {
  return {
    ...payment({ key, token: undefined }),
    settle: undefined,
    lockKey: CHANNEL,
    reservation: 'with the first change',
    commit: async (amount) => {
      const previous = await ledger.states.get(CHANNEL)
      const charged = BigInt(previous.text === '' ? 0 : previous.text) + amount
      return { kind: 'charged', receipt: RECEIPT, state: { previous, next: charged.toString() } }
    },
  }
}

const chargedTo = async ({ ledger }: Shop): Promise<string> => (await ledger.states.get(CHANNEL)).text

t.test(
  'stores a call through a channel in one commit: reservation, answer, receipt and charge',
  async (t) => {
    const shop = await openShop(t)
    let commits = 0
    const ledger: Ledger = {
      ...shop.ledger,
      insert: (record) => {
        commits += 1
        return shop.ledger.insert(record)
      },
      commit: (changes, states) => {
        commits += 1
        return shop.ledger.commit(changes, states)
      },
    }
    const bought = await shop.buy({ payment: voucher(shop) }, { ...shop.deps, ledger })
    t.match(bought, { kind: 'answered', receipt: RECEIPT, answer: { value: { run: 1 } } })
    t.equal(commits, 1)
    t.strictSame(shop.history, ['settled'])
    t.equal(await chargedTo(shop), '5000')
    const stored = await shop.stored()
    t.match(stored && (await readAnswer(shop.ledger.answers, stored)), { value: { run: 1 } })
  },
)

t.test('answers copies of a voucher with one charge and one run, while it is worked on too', async (t) => {
  const shop = await openShop(t)
  let goOn = (): void => undefined
  const gate = new Promise<void>((resolve) => (goOn = resolve))
  let runs = 0
  const run = async () => {
    runs += 1
    await gate
    return STORED
  }
  const copies = Array.from({ length: 5 }, () => shop.buy({ payment: voucher(shop), run }))
  await until('the work has begun', () => runs === 1)
  t.equal(await shop.stored(), undefined, 'and nothing is stored yet')
  goOn()
  for (const outcome of await Promise.all(copies)) t.match(outcome, { kind: 'answered', receipt: RECEIPT })
  t.equal(runs, 1)
  t.equal(await chargedTo(shop), '5000')
})

t.test('works for different calls of one channel one after the other', async (t) => {
  const shop = await openShop(t)
  let [atWork, most] = [0, 0]
  const run = async () => {
    atWork += 1
    most = Math.max(most, atWork)
    await delay(5)
    atWork -= 1
    return STORED
  }
  const calls = ['one', 'two', 'three'].map((digest) =>
    shop.buy({ payment: voucher(shop, `test:${digest}`), digest, run }),
  )
  for (const outcome of await Promise.all(calls)) t.match(outcome, { kind: 'answered' })
  t.equal(most, 1)
  t.equal(await chargedTo(shop), '15000')
})

t.test('charges nothing for work that fails, and takes the same voucher afterwards', async (t) => {
  const shop = await openShop(t)
  const run = () => Promise.reject(BROKEN)
  t.match(await shop.buy({ payment: voucher(shop), run }), { kind: 'failed', fault: BROKEN })
  t.match(await shop.stored(), { state: 'voided' })
  t.equal(await chargedTo(shop), '')
  t.match(await shop.buy({ payment: voucher(shop) }), { kind: 'answered' })
  t.equal(await chargedTo(shop), '5000')
})

t.test('forgets a call whose client has left: it is neither stored nor charged', async (t) => {
  const shop = await openShop(t)
  const gone = new AbortController()
  const run = async () => {
    gone.abort()
    return STORED
  }
  t.match(await shop.buy({ payment: voucher(shop), run, gone: gone.signal }), { kind: 'disconnected' })
  t.equal(await shop.stored(), undefined)
  t.equal(await chargedTo(shop), '')
  t.match(await shop.buy({ payment: voucher(shop) }), { kind: 'answered' }, 'when it comes back')
})

t.test('stores the reservation of long work, so that others see it', async (t) => {
  const shop = await openShop(t)
  const renewals: (() => void)[] = []
  const every = (ms: number, work: () => void): (() => void) => {
    if (ms === LEASE_MS / 3) renewals.push(work)
    return () => undefined
  }
  const run = async () => {
    for (const renew of renewals) renew()
    await until('it is stored', async () => (await shop.stored())?.state === 'reserved')
    return STORED
  }
  const bought = await shop.buy({ payment: voucher(shop), run }, { ...shop.deps, every })
  t.match(bought, { kind: 'answered', receipt: RECEIPT })
  t.strictSame(shop.history, ['reserved', 'settled'])
  t.equal(await chargedTo(shop), '5000')
})

t.test('charges nothing when another process has charged the channel during the work', async (t) => {
  const shop = await openShop(t)
  const payment = voucher(shop)
  const theirs = async (): Promise<void> => {
    const previous = await shop.ledger.states.get(CHANNEL)
    await shop.ledger.commit([], [{ previous, next: '1' }])
  }
  const commit: CommittedPayment['commit'] = async (amount) => {
    const charge = await payment.commit(amount)
    await theirs()
    return charge
  }
  t.match(await shop.buy({ payment: { ...payment, commit } }), {
    kind: 'refused',
    refusal: { code: 'payment_pending' },
  })
  t.equal(await shop.stored(), undefined)
  t.equal(await chargedTo(shop), '1')
})

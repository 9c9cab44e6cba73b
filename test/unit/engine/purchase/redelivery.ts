import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { BuyerConnections } from '../../../../src/engine/http/buyer-connections.ts'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { identifierName } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import type { State } from '../../../../src/engine/ledger/payment-record.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import { type PurchaseResult } from '../../../../src/engine/purchase/result.ts'
import { markReceived, markUndelivered } from '../../../../src/engine/purchase/delivery-marks.ts'
import {
  DEEP,
  FAILED,
  leave,
  MOON,
  NOW,
  openShop,
  RECEIPT,
  UNKNOWN,
  type Shop,
} from '../../../support/scripted-protocol.ts'

const sign = (shop: Shop, name: string) => shop.payment({ key: `test:${name}`, token: name })

/** Settled, and then the connection breaks. */
async function lose(shop: Shop): Promise<void> {
  const outcome = await shop.buy()
  if (outcome.kind !== 'answered') throw new Error(outcome.kind)
  await hangUp(shop, outcome)
}

/** What the watch over an answer does when the connection is gone. */
async function hangUp({ deps }: Shop, outcome: PurchaseResult): Promise<void> {
  if (outcome.kind !== 'answered') throw new Error(outcome.kind)
  deps.buyers.forget(outcome.record.id)
  await markUndelivered(deps, outcome.record)
}

t.test('charges a client that signs again after a lost answer once', async (t) => {
  const shop = await openShop(t)
  await lose(shop)
  const outcome = await shop.buy({ payment: sign(shop, 'two') })
  t.match(outcome, { kind: 'answered', receipt: RECEIPT, answer: { value: { run: 1 } } })
  t.match(outcome, { record: { key: 'test:one' } }, 'the receipt is of the payment that has moved money')
  t.equal(shop.bank.charges, 1)
  t.equal(shop.runs(), 1)
  t.equal(await shop.ledger.get('test:two'), undefined, 'the new payment is left unused')
})

t.test('charges again for a payment that buys the same after the answer arrived', async (t) => {
  const shop = await openShop(t)
  const outcome = await shop.buy()
  if (outcome.kind === 'answered') await markReceived(shop.deps, outcome.record)
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:two' } })
  t.equal(shop.bank.charges, 2)
})

t.test('knows of an answer that has arrived before the ledger does', async (t) => {
  const shop = await openShop(t)
  const outcome = await shop.buy()
  if (outcome.kind !== 'answered') throw new Error(outcome.kind)
  let mark = (): void => undefined
  shop.deps.buyers.arrived(outcome.record.id, new Promise<void>((resolve) => (mark = resolve)))
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:two' } })
  t.equal(shop.bank.charges, 2)
  t.equal(shop.deps.buyers.hasArrived(outcome.record.id), true)
  mark()
  await delay(0)
  t.equal(shop.deps.buyers.hasArrived(outcome.record.id), false, 'now the ledger tells')
})

t.test('answers and charges two purchases of the same thing on two open connections', async (t) => {
  const shop = await openShop(t)
  await shop.buy()
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:two' } })
  t.equal(shop.bank.charges, 2, 'nobody has lost anything')
  const settling = await openShop(t)
  const { payment } = { payment: settling.payment() }
  const slow = {
    ...payment,
    settle: async (...asked: Parameters<typeof payment.settle>) => {
      const settlement = await payment.settle(...asked)
      const second = await settling.buy({ payment: sign(settling, 'two') })
      t.match(second, { kind: 'answered', record: { key: 'test:two' } }, 'while the first settles, at once')
      return settlement
    },
  }
  t.match(await settling.buy({ payment: slow }), { kind: 'answered' })
  t.equal(settling.bank.charges, 2)
})

t.test('waits for an answer that another process is sending', async (t) => {
  for (const [mark, charges] of [
    [markReceived, 2],
    [markUndelivered, 1],
  ] as const) {
    const shop = await openShop(t)
    const theirs = { ...shop.deps, owner: 'theirs', buyers: new BuyerConnections() }
    const first = await shop.buy({}, theirs)
    const second = shop.buy({ payment: sign(shop, 'two') })
    await delay(30)
    t.equal(shop.bank.charges, 1, 'nothing is decided yet')
    if (first.kind === 'answered') await mark(theirs, first.record)
    t.match(await second, { kind: 'answered' })
    t.equal(shop.bank.charges, charges)
  }
})

t.test('counts an answer as lost when its process died while sending', async (t) => {
  const shop = await openShop(t)
  await shop.buy()
  shop.clock.now += LEASE_MS
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:one' } })
  t.equal(shop.bank.charges, 1)
})

t.test(
  'redelivers a lost answer to the same buyer for the same request, within its period only',
  async (t) => {
    const others: [string, (shop: Shop) => Promise<PurchaseResult>][] = [
      [
        'another payer',
        async (shop) => {
          const payment = sign(shop, 'two')
          const verify = async () =>
            ({
              kind: 'verified',
              payer: 'other',
              account: 'key',
              validBefore: shop.bank.validBefore,
            }) as const
          return shop.buy({ payment: { ...payment, verify } })
        },
      ],
      ['other arguments', (shop) => shop.buy({ payment: sign(shop, 'two'), digest: 'others' })],
      ['another operation', (shop) => shop.buy({ payment: sign(shop, 'two'), route: MOON })],
      [
        'another protocol',
        (shop) => {
          const payment = sign(shop, 'two')
          return shop.buy({ payment: { ...payment, protocol: { ...payment.protocol, name: 'other' } } })
        },
      ],
      [
        'ten minutes later',
        (shop) => {
          shop.clock.now += 600_001
          shop.bank.validBefore = shop.clock.now + 60_000
          return shop.buy({ payment: sign(shop, 'two') })
        },
      ],
    ]
    for (const [name, buy] of others) {
      const shop = await openShop(t)
      await lose(shop)
      t.match(await buy(shop), { kind: 'answered', record: { key: 'test:two' } }, name)
      t.equal(shop.bank.charges, 2, name)
    }
  },
)

t.test('resolves an unknown payment before the next one is charged', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN]
  t.match(await shop.buy(), { kind: 'pending' })
  shop.bank.resolution = UNKNOWN
  const { id } = (await shop.stored()) ?? {}
  t.strictSame(
    await shop.buy({ payment: sign(shop, 'two') }),
    { kind: 'pending', id },
    'not charged a second time',
  )
  shop.bank.resolution = { kind: 'settled', receipt: RECEIPT }
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:one' } })
  t.equal(shop.bank.charges, 0)
})

t.test('accepts a new payment after an earlier one turned out to have failed', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN, { kind: 'settled', receipt: RECEIPT }]
  await shop.buy()
  shop.bank.resolution = FAILED
  t.match(await shop.buy({ payment: sign(shop, 'two') }), { kind: 'answered', record: { key: 'test:two' } })
  t.equal(shop.bank.charges, 1)
})

interface Leaver {
  readonly gone: AbortSignal
  /** Leaves, and signs again a moment later. */
  readonly signAgain: () => Promise<void>
}

/** A client that leaves in the middle of its purchase; resolves to what its second payment brings. */
async function leaveDuring(
  shop: Shop,
  buyFirst: (leaver: Leaver) => Promise<PurchaseResult>,
): Promise<PurchaseResult | undefined> {
  const gone = new AbortController()
  let second: Promise<PurchaseResult> | undefined
  const signAgain = async (): Promise<void> => {
    if (second !== undefined) return
    gone.abort()
    await delay(10)
    second = shop.buy({ payment: sign(shop, 'two') })
    await delay(30)
  }
  const first = await buyFirst({ gone: gone.signal, signAgain })
  if (first.kind === 'answered') await markUndelivered(shop.deps, first.record)
  return second
}

t.test('charges a client that leaves during settlement and signs again once', async (t) => {
  const shop = await openShop(t)
  const second = await leaveDuring(shop, ({ gone, signAgain }) => {
    const payment = shop.payment()
    const settle = async (...asked: Parameters<typeof payment.settle>): Promise<Settlement> => {
      const settlement = await payment.settle(...asked)
      await signAgain()
      return settlement
    }
    return shop.buy({ payment: { ...payment, settle }, gone })
  })
  t.match(second, { kind: 'answered', record: { key: 'test:one' } })
  t.equal(shop.bank.charges, 1)
})

t.test('charges a client that leaves while its dispatch is being stored and signs again once', async (t) => {
  const shop = await openShop(t)
  const second = await leaveDuring(shop, ({ gone, signAgain }) => {
    const slow: Ledger = {
      ...shop.ledger,
      replace: async (previous, next) => {
        if (next.state === 'settling') await signAgain()
        return shop.ledger.replace(previous, next)
      },
    }
    return shop.buy({ gone }, { ...shop.deps, ledger: slow })
  })
  t.match(second, { kind: 'answered', record: { key: 'test:one' } })
  t.equal(shop.bank.charges, 1)
})

t.test('gives a client that leaves during the work and signs again the answer of that work', async (t) => {
  const shop = await openShop(t)
  const second = await leaveDuring(shop, ({ gone, signAgain }) =>
    shop.buy({
      gone,
      run: async () => {
        await signAgain()
        return { kind: 'json', value: 'worked for' }
      },
    }),
  )
  t.match(second, { kind: 'answered', record: { key: 'test:one' }, answer: { value: 'worked for' } })
  t.equal(shop.bank.charges, 1)
  t.equal(await shop.ledger.get('test:two'), undefined, 'the new payment is left unused')
})

/** Signs again while a process that may be dead holds the first payment; resolves when its lease has ended. */
async function outlastLease(t: Test, shop: Shop, state: State): Promise<PurchaseResult> {
  await leave(shop, state, { leaseUntil: NOW + 1 })
  const second = shop.buy({ payment: sign(shop, 'two') })
  await delay(30)
  t.equal(shop.bank.charges, 0, 'while the first may be alive, it is waited for')
  shop.clock.now += 1
  return second
}

t.test('takes over a reservation of a dead process before the next payment is charged', async (t) => {
  const shop = await openShop(t)
  const second = await outlastLease(t, shop, 'reserved')
  t.match(second, { kind: 'answered', record: { key: 'test:two' } })
  t.equal(shop.bank.charges, 1)
  t.match(await shop.stored(), { state: 'voided' }, 'a dispatch that arrives now is refused')
})

t.test('charges once when a process dies after broadcasting and the buyer signs again', async (t) => {
  const shop = await openShop(t)
  const second = await outlastLease(t, shop, 'settling')
  t.match(second, { kind: 'answered', record: { key: 'test:one' } })
  t.equal(shop.bank.charges, 0)
})

t.test('treats two simultaneous purchases of the same thing as two', async (t) => {
  const shop = await openShop(t)
  const outcomes = await Promise.all(['a', 'b', 'c'].map((name) => shop.buy({ payment: sign(shop, name) })))
  t.strictSame(
    outcomes.map((outcome) => outcome.kind === 'answered' && outcome.record.key),
    ['test:a', 'test:b', 'test:c'],
  )
  t.equal(shop.bank.charges, 3)
})

t.test(
  'treats two purchases of the same thing as two before a slow store confirms the first reservation',
  async (t) => {
    const shop = await openShop(t)
    let second: Promise<PurchaseResult> | undefined
    const slow: Ledger = {
      ...shop.ledger,
      insert: async (record) => {
        const standing = await shop.ledger.insert(record)
        second = shop.buy({ payment: sign(shop, 'two') })
        await second
        return standing
      },
    }
    const first = await shop.buy({}, { ...shop.deps, ledger: slow })
    t.match(first, { kind: 'answered', record: { key: 'test:one' } })
    t.match(await second, { kind: 'answered', record: { key: 'test:two' } })
    t.equal(shop.bank.charges, 2)
  },
)

t.test('runs paid work that has failed for the next payment, uncharged', async (t) => {
  const shop = await openShop(t)
  t.match(await shop.buy({ route: DEEP, run: () => Promise.reject(new Error('broken')) }), {
    kind: 'paidUnfulfilled',
  })
  t.match(await shop.buy({ route: DEEP, payment: sign(shop, 'two') }), {
    kind: 'answered',
    record: { key: 'test:one' },
  })
  t.equal(shop.bank.charges, 1)
})

t.test(
  'takes a payment with an identifier of its own, on a fresh challenge, for another purchase',
  async (t) => {
    const named = (shop: Shop, changes: object) => ({
      ...sign(shop, 'two'),
      identifier: 'order-0000000002',
      ...changes,
    })
    for (const [changes, charges] of [
      [{}, 2],
      [{ token: 'secret' }, 1],
      [{ identifier: undefined }, 1],
    ] as const) {
      const shop = await openShop(t)
      await lose(shop)
      t.match(await shop.buy({ payment: named(shop, changes) }), { kind: 'answered' })
      t.equal(shop.bank.charges, charges, JSON.stringify(changes))
    }
    const owed = await openShop(t)
    await owed.buy({ route: DEEP, run: () => Promise.reject(new Error('broken')) })
    t.match(await owed.buy({ route: DEEP, payment: named(owed, {}) }), { record: { key: 'test:one' } })
    t.equal(owed.bank.charges, 1, 'no answer was sent yet: it is owed')
  },
)

t.test(
  'treats payments under one identifier of a payer as one purchase, however they are signed',
  async (t) => {
    const shop = await openShop(t)
    const named = (name: string) => ({ ...sign(shop, name), identifier: 'order-0000000001' })
    const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((name) => shop.buy({ payment: named(name) })))
    for (const outcome of outcomes) t.match(outcome, { kind: 'answered', answer: { value: { run: 1 } } })
    t.equal(shop.runs(), 1)
    t.equal(shop.bank.charges, 1)
    const [first] = outcomes
    if (first?.kind === 'answered') await markReceived(shop.deps, first.record)
    t.match(
      await shop.buy({ payment: named('e') }),
      { kind: 'answered', answer: { value: { run: 1 } } },
      'later too',
    )
    t.equal(shop.bank.charges, 1)
    t.match(
      await shop.buy({ payment: named('f'), route: MOON }),
      { kind: 'replayRejected', code: 'idempotency_conflict' },
      'for another request it is refused',
    )
    t.match(await shop.buy({ payment: named('g'), digest: 'others' }), {
      kind: 'replayRejected',
      code: 'idempotency_conflict',
    })
    const verify = async () =>
      ({ kind: 'verified', payer: 'other', account: 'key', validBefore: shop.bank.validBefore }) as const
    t.match(await shop.buy({ payment: { ...named('h'), verify } }), {
      kind: 'answered',
      record: { key: 'test:h' },
    })
    t.equal(shop.bank.charges, 2, 'another payer has names of its own')
  },
)

t.test('frees an identifier when its purchase came to nothing', async (t) => {
  const shop = await openShop(t)
  const named = (name: string) => ({ ...sign(shop, name), identifier: 'order-0000000001' })
  const failing = await shop.buy({ payment: named('a'), run: () => Promise.reject(new Error('broken')) })
  t.match(failing, { kind: 'failed' })
  const bought = await shop.buy({ payment: named('b') })
  t.match(bought, { kind: 'answered', record: { key: 'test:b' } })
  if (bought.kind === 'answered') await markReceived(shop.deps, bought.record)
  t.match(await shop.buy({ payment: named('a') }), { kind: 'answered', record: { key: 'test:b' } })
  t.equal(shop.bank.charges, 1)
  const identifier = identifierName('buyer', 'order-0000000002')
  await leave(shop, 'fulfilled', { identifier })
  const payment = { ...sign(shop, 'c'), identifier: 'order-0000000002' }
  t.match(await shop.buy({ payment, digest: 'arguments' }), { kind: 'answered', record: { key: 'test:c' } })
  t.equal(shop.bank.charges, 2, 'one whose process has died before any money moved is forgotten')
})

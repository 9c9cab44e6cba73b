import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { allBuyersIn, buyersIn } from '../../../src/console/buyer-sums.ts'
import type { DailyTotal, TotalKind } from '../../../src/engine/ledger/sales-totals.ts'

const PERIOD = { days: 7, from: '2026-11-20', to: '2026-11-26' } as const
const BUYERS = 10_000
const PAGE = 1_000
const NETWORK = 'eip155:84532'
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

/** Two days on which each buyer has paid, in another order. */
function openTotals() {
  let wasRead = false
  return {
    wasRead: () => wasRead,
    ledger: {
      totals: {
        read: async function* (_kind: TotalKind): AsyncGenerator<readonly DailyTotal[]> {
          for (const date of ['2026-11-21', '2026-11-24'])
            for (let first = 0; first < BUYERS; first += PAGE) {
              yield Array.from({ length: PAGE }, (_, place) => {
                const number = first + place
                const payer = `buyer ${(number * 7_919) % BUYERS}`
                const of = { kind: 'buyer', payer, network: NETWORK, asset: ASSET } as const
                return { date, of, payments: 1, amount: BigInt(1 + ((number * 31) % 4_999)) }
              })
              await setImmediate()
            }
          wasRead = true
        },
      },
    },
  }
}

/** What a page shows that is loaded again until all are counted. */
async function countAll(ledger: ReturnType<typeof openTotals>['ledger']) {
  for (;;) {
    const sums = await buyersIn({ ledger, now: () => 0 }, PERIOD)
    if (sums !== undefined) return sums
  }
}

t.test('adds up what each buyer has paid, the largest first', async (t) => {
  const { ledger } = openTotals()
  const all = await countAll(ledger)
  t.equal(all.size, BUYERS)
  t.equal(all.repeating, BUYERS)
  const sums = all.slice(0, all.size)
  t.equal(new Set(sums.map(({ name }) => name)).size, BUYERS)
  t.ok(sums.every(({ payments }) => payments === 2))
  t.strictSame(
    sums.map(({ dollars }) => Number(dollars)),
    Array.from({ length: BUYERS }, (_, number) => 2 * (1 + ((number * 31) % 4_999))).toSorted(
      (one, other) => other - one,
    ),
  )
  const some = ['buyer 7', 'nobody', sums[0]?.name ?? '', 'buyer 8']
  t.strictSame(
    all.among(some),
    sums.filter(({ name }) => some.includes(name)),
  )
})

t.test('lets other work go on while it sorts many buyers', async (t) => {
  const { ledger, wasRead } = openTotals()
  let turns = 0
  let isSorted = false
  const counting = countAll(ledger).then(() => (isSorted = true))
  while (!isSorted) {
    await setImmediate()
    if (wasRead()) turns += 1
  }
  await counting
  t.ok(turns > BUYERS / 1_000, `${turns} turns of the event loop`)
})

t.test('waits for all buyers where a file is written, and shows a page before', async (t) => {
  const { totals } = openTotals().ledger
  let finish: (value: undefined) => void = () => undefined
  const slow = new Promise<undefined>((resolve) => (finish = resolve))
  const ledger = {
    totals: {
      read: async function* (kind: TotalKind) {
        await slow
        yield* totals.read(kind)
      },
    },
  }
  const sources = { ledger, now: () => 0 }
  const file = allBuyersIn(sources, PERIOD)
  t.equal(await buyersIn(sources, PERIOD), undefined)
  finish(undefined)
  t.equal((await file).size, BUYERS)
})

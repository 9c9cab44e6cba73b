import { spawnSync } from 'node:child_process'
import t from 'tap'
import type { StoreKind } from '../../simulate/faults.ts'
import { EVM_WAYS } from '../../simulate/market.ts'
import { drawHistory, simulate, withFacilitators } from '../../simulate/simulation.ts'

/** Of `npm run simulate`, which draws its own; enough to meet each kind of fault. */
const RUNS = 8
const PURCHASES = 40

for (const store of ['lmdb', 'redis'] satisfies StoreKind[])
  t.test(`charges, answers and tells the truth through faults, over ${store}`, async (t) => {
    let charges = 0
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const outcome = await simulate(drawHistory(seed, store, PURCHASES))
      t.strictSame(outcome.violations, [], `seed ${seed}`)
      charges += outcome.charges
    }
    t.ok(charges > (RUNS * PURCHASES) / 2, 'most purchases are charged despite the faults')
  })

t.test('owes back what a reorganization has charged after its buyer was told otherwise', async (t) => {
  // A transaction fails in a block, its buyer is told so, and another block carries it out.
  for (const seed of [182, 207])
    t.strictSame(
      (await simulate(drawHistory(seed, 'redis', PURCHASES, ['exact']))).violations,
      [],
      `seed ${seed}`,
    )
})

t.test('brings a deposit in again that a reorganization has undone', async (t) => {
  t.strictSame((await simulate(drawHistory(2008, 'lmdb', PURCHASES, EVM_WAYS))).violations, [])
})

t.test('charges on Solana what is answered, through forks and dropped transactions', async (t) => {
  for (const seed of [1, 2, 3])
    t.strictSame((await simulate(drawHistory(seed, 'redis', PURCHASES, ['exact-svm']))).violations, [])
})

t.test(
  'charges what is answered, through facilitators that break, repeat and say yes too early',
  async (t) => {
    for (const store of ['lmdb', 'redis'] satisfies StoreKind[])
      for (const seed of [1, 2, 3]) {
        const outcome = await simulate(withFacilitators(drawHistory(seed, store, PURCHASES, ['exact'])))
        t.strictSame(outcome.violations, [], `seed ${seed}, over ${store}`)
        t.ok(outcome.charges > PURCHASES / 2, 'most purchases are charged despite the faults')
      }
  },
)

t.test('takes the same course for the same seed', async (t) => {
  const [one, other] = [
    await simulate(drawHistory(7, 'redis', PURCHASES)),
    await simulate(drawHistory(7, 'redis', PURCHASES)),
  ]
  t.strictSame(one.trace, other.trace)
  t.not((await simulate(drawHistory(8, 'redis', PURCHASES))).digest, one.digest)
})

t.test('finds a fault that is planted in the source', (t) => {
  const args = ['--only', 'is not recorded', '--purchases', '400']
  const run = spawnSync(
    process.execPath,
    ['--import=./test/support/tsx.mjs', 'test/simulate/plant.ts', ...args],
    { encoding: 'utf8' },
  )
  t.match(run.stdout, /\| the transaction is not recorded \| \d+ \| .*no record knows it/)
  t.equal(run.status, 0, run.stderr)
  t.end()
})

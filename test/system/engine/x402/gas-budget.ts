import { systemEvery } from '../../../../src/engine/base/every.ts'
import t from 'tap'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { GasBudget } from '../../../../src/engine/chains/evm/gas-budget.ts'
import { GasLosses } from '../../../../src/engine/chains/evm/gas-losses.ts'
import type { PaymentsUnderWay, Standing } from '../../../../src/engine/chains/evm/gas-shares.ts'
import { BASE } from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

const BUDGET = 1_000n
let time = 1_000_000
const now = (): number => time

function openProcess(ledger: Ledger, owner: string) {
  const losses = new GasLosses({ network: BASE, ledger, now, report: () => undefined })
  const budget = new GasBudget({ network: BASE, ledger, owner, losses, now, every: systemEvery })
  return {
    budget,
    hold: (id: string, wei: bigint, standing: Standing = 'known', payments: PaymentsUnderWay = 'one') =>
      budget.hold({ id, standing, payments, wei }, BUDGET),
    lose: async (id: string, wei: bigint) => {
      const standing = budget.standing(id)
      await losses.add({ payer: undefined, hash: id, nonce: id, gasCost: wei, standing }, BUDGET)
      await budget.giveBack()
      budget.drop(id)
    },
  }
}

t.test('keeps what all processes have in flight within the budget', async (t) => {
  const ledger = await openTemporaryLedger(t)
  const [one, two] = [openProcess(ledger, 'one'), openProcess(ledger, 'two')]
  t.equal(await one.hold('a', 400n), 'held')
  t.equal(await two.hold('b', 400n), 'held')
  t.equal(await one.hold('c', 300n), 'in flight')
  t.equal(await two.hold('d', 100n), 'held')
  two.budget.drop('b')
  await two.budget.giveBack()
  t.equal(await one.hold('c', 300n), 'held')
})

t.test('gives two processes that ask at the same time no more than there is', async (t) => {
  const ledger = await openTemporaryLedger(t)
  const processes = ['one', 'two', 'three'].map((owner) => openProcess(ledger, owner))
  for (const { hold } of processes) await hold('first', 10n)
  const holds = await Promise.all(processes.map(({ hold }) => hold('large', 500n)))
  t.ok(holds.filter((hold) => hold === 'held').length <= 1, holds.join())
})

t.test('leaves a quarter to known payers, and gives contracts a quarter', async (t) => {
  const { hold } = openProcess(await openTemporaryLedger(t), 'one')
  t.equal(await hold('a', 10n), 'held')
  t.equal(await hold('b', 251n, 'code'), 'in flight')
  t.equal(await hold('c', 250n, 'code'), 'held')
  t.equal(await hold('d', 501n, 'new'), 'in flight')
  t.equal(await hold('e', 500n, 'new'), 'held')
  t.equal(await hold('f', 241n), 'in flight')
  t.equal(await hold('g', 240n), 'held')
})

t.test('leaves room to new payers with one payment beside those with several', async (t) => {
  const { hold, budget, lose } = openProcess(await openTemporaryLedger(t), 'one')
  t.equal(await hold('a', 50n, 'new', 'several'), 'held')
  t.equal(await hold('b', 50n, 'new', 'several'), 'in flight', 'an eighth of 750 is in flight')
  t.equal(await hold('c', 600n, 'new'), 'held')
  budget.drop('c')
  await lose('a', 30n)
  t.equal(await hold('d', 150n, 'new'), 'held')
  t.equal(await hold('e', 50n, 'new'), 'in flight', 'a quarter of 720 at once, once something was lost')
  budget.drop('d')
  t.equal(await hold('f', 50n, 'new', 'several'), 'in flight', 'a sixteenth')
  t.equal(await hold('f', 45n, 'new', 'several'), 'held')
  budget.drop('f')
  t.equal(await hold('g', 700n, 'new'), 'held', 'one of a payer with one payment, whatever its size')
})

t.test('counts what was lost within the hour, in every process', async (t) => {
  const ledger = await openTemporaryLedger(t)
  const [one, two] = [openProcess(ledger, 'one'), openProcess(ledger, 'two')]
  t.equal(await one.hold('a', 600n, 'new'), 'held')
  await one.lose('a', 700n)
  t.equal(await two.hold('b', 51n, 'new'), 'lost')
  t.equal(await two.hold('c', 50n, 'new'), 'held')
  t.equal(await two.hold('d', 301n), 'lost', 'an hour has to pass')
  t.equal(await two.hold('e', 250n), 'held')
  time += 3_600_001
  t.equal(await one.hold('f', 300n, 'new'), 'held')
})

t.test(
  'lets one transaction be sent that is larger than its share, when nothing else is at risk',
  async (t) => {
    const { hold, budget, lose } = openProcess(await openTemporaryLedger(t), 'one')
    t.equal(await hold('a', 5_000n, 'code'), 'held')
    t.equal(await hold('b', 1n, 'code'), 'in flight')
    budget.drop('a')
    t.equal(await hold('b', 5_000n, 'code'), 'held')
    await lose('b', 1n)
    t.equal(await hold('c', 5_000n, 'code'), 'lost')
  },
)

t.test(
  'holds an unknown outcome until its payment expires, and what a killed process holds for 20 seconds',
  async (t) => {
    const ledger = await openTemporaryLedger(t)
    const [one, two] = [openProcess(ledger, 'one'), openProcess(ledger, 'two')]
    t.equal(await one.hold('a', 900n), 'held')
    one.budget.drop('a', now() + 30_000)
    t.equal(await one.hold('b', 200n), 'in flight')
    t.equal(await two.hold('c', 200n), 'in flight')
    time += 30_001
    t.equal(await one.hold('b', 200n), 'held')
    time += 20_001
    t.equal(await two.hold('c', 900n), 'held')
  },
)

t.test('changes the amount of a payment that is sent again', async (t) => {
  const { hold } = openProcess(await openTemporaryLedger(t), 'one')
  t.equal(await hold('a', 50n), 'held')
  t.equal(await hold('a', 900n), 'held')
  t.equal(await hold('b', 101n), 'in flight')
  t.equal(await hold('b', 100n), 'held')
})

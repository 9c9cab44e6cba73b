import t from 'tap'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { PaymentLocks } from '../../../../src/engine/purchase/payment-locks.ts'

t.test('lets go of a payment that waits for long, and still works on one at a time', async (t) => {
  const ledger = await openLmdbLedger(t.testdir())
  t.teardown(() => ledger.close())
  const patience: (() => void)[] = []
  const locks = new PaymentLocks({
    ledger,
    owner: 'one',
    now: () => 1_800_000_000_000,
    sleep: async () => {},
    every: (ms, work) => {
      if (ms > 10_000) patience.push(work)
      return () => {}
    },
  })
  const done: string[] = []
  let end = (): void => {}
  const first = new Promise<void>((resolve) => (end = resolve))
  const working = locks.run('channel', async () => {
    await first
    done.push('first')
  })
  const second = locks.run('channel', async () => done.push('second'))
  patience.shift()?.()
  t.equal(await second, undefined, 'it is given up')
  const third = locks.run('channel', async () => done.push('third'))
  // As long as it would take the third one to begin.
  await locks.run('another channel', async () => {})
  end()
  await Promise.all([working, third])
  t.strictSame(done, ['first', 'third'])
})

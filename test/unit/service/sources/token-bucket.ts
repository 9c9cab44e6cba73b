import t from 'tap'
import { TokenBucket } from '../../../../src/service/sources/token-bucket.ts'

function clock(start = 1_000_000): { readonly now: () => Date; ms: number } {
  const state = { ms: start, now: () => new Date(state.ms) }
  return state
}

t.test('passes a burst at once, and spaces what follows by the rate', async (t) => {
  const bucket = new TokenBucket({ perSecond: 2, burst: 3 }, clock().now)
  const waits = Array.from({ length: 6 }, () => bucket.take(10_000).waitMs)
  t.same(waits, [0, 0, 0, 500, 1000, 1500])
})

t.test('takes nothing for a refused call', async (t) => {
  const bucket = new TokenBucket({ perSecond: 1, burst: 1 }, clock().now)
  bucket.take(0)
  t.same(bucket.take(999), { kind: 'refused', waitMs: 1000 })
  t.same(bucket.take(999), { kind: 'refused', waitMs: 1000 })
  t.same(bucket.take(1000), { kind: 'granted', waitMs: 1000 })
})

t.test('saves up one burst at most', async (t) => {
  const time = clock()
  const bucket = new TokenBucket({ perSecond: 1, burst: 2 }, time.now)
  time.ms += 3_600_000
  t.same(
    [0, 0, 0].map((patience) => bucket.take(patience).kind),
    ['granted', 'granted', 'refused'],
  )
})

t.test('keeps its level when the clock is set back', async (t) => {
  const time = clock()
  const bucket = new TokenBucket({ perSecond: 1, burst: 2 }, time.now)
  time.ms -= 3_600_000
  t.equal(bucket.take(0).kind, 'granted')
  t.equal(bucket.take(0).kind, 'granted')
  t.equal(bucket.take(0).kind, 'refused')
  time.ms += 1000
  t.equal(bucket.take(0).kind, 'granted')
})

t.test('gives a returned grant to the next caller, within its capacity', async (t) => {
  const bucket = new TokenBucket({ perSecond: 1, burst: 1 }, clock().now)
  bucket.take(0)
  bucket.giveBack()
  bucket.giveBack()
  t.equal(bucket.take(0).kind, 'granted')
  t.equal(bucket.take(0).kind, 'refused')
})

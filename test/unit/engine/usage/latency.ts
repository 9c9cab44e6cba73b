import t from 'tap'
import { NOTHING, RouteCounters } from '../../../../src/engine/usage/counts.ts'
import { answersIn, quantile } from '../../../../src/engine/usage/latency.ts'

function latencyOf(times: readonly number[]): readonly number[] {
  const counters = new RouteCounters()
  for (const ms of times) counters.succeed(ms, 0)
  return (counters.take() ?? NOTHING).latency
}

t.test('reports quantiles within the bounds of their bucket', async (t) => {
  const times = Array.from({ length: 1_000 }, (_, place) => 1.009 ** place)
  const latency = latencyOf(times)
  t.equal(answersIn(latency), 1_000)
  for (const share of [0.01, 0.25, 0.5, 0.9, 0.95, 0.99]) {
    const exact = times[Math.ceil(share * 1_000) - 1] ?? 0
    const told = quantile(latency, share) ?? 0
    t.ok(told > exact / 2.5 && told < exact * 2.5, `${share}: ${told} for ${exact}`)
  }
})

t.test(
  'reports no time without an answer, one for one answer, and slow ones within their bucket',
  async (t) => {
    t.equal(quantile(NOTHING.latency, 0.5), undefined)
    t.equal(quantile(latencyOf([0]), 0.95), 1)
    t.equal(quantile(latencyOf([150]), 1), 200)
    t.equal(quantile(latencyOf([3_600_000]), 0.5), 60_000)
    t.ok((quantile(latencyOf([1, 1, 1, 400]), 0.5) ?? 9) <= 1, 'one slow answer moves no median')
    t.ok((quantile(latencyOf([1, 1, 1, 400]), 0.95) ?? 0) > 200)
  },
)

import t from 'tap'
import { costOf, costText } from '../../../../../../src/service/handlers/util/tokencost/cost.ts'

t.test('rounds costs half up, to ten decimal places', async (t) => {
  for (const [tokens, price, text] of [
    [0, 15, '0'],
    [1000, 0, '0'],
    [1_000_000, 3, '3'],
    [10_000_000, 3, '30'],
    [1000, 3, '0.003'],
    [500, 15, '0.0075'],
    [1, 0.1, '0.0000001'],
    [1, 0.000049, '0'],
    [1, 0.00005, '0.0000000001'],
    [3, 0.1, '0.0000003'],
    [7, 0.09999999999999999, '0.0000007'],
    [100_000_000, 600, '60000'],
  ] as const) {
    t.equal(costText(costOf(tokens, price)), text, `${tokens} at ${price}`)
  }
})

t.test('rounds a sum of costs once', async (t) => {
  const half = costOf(1, 0.00005)
  t.equal(costText(half + half), '0.0000000001')
})

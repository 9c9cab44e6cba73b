import t from 'tap'
import { parseGwei } from '../../../src/engine/base/money.ts'

t.test('reads a price of gas to the wei', async (t) => {
  const read: Readonly<Record<string, bigint>> = {
    '5': 5_000_000_000n,
    '0.05': 50_000_000n,
    '0.000000001': 1n,
    '1.5': 1_500_000_000n,
    '5.000': 5_000_000_000n,
    '1000000': 10n ** 15n,
  }
  for (const [text, wei] of Object.entries(read)) t.equal(parseGwei(text), wei, text)
})

t.test('rejects everything but gas prices', async (t) => {
  for (const text of ['', '0', '0.0', '-5', '+5', '5e3', '.5', '5.', '0.0000000001', '05', '1_000', '5 gwei'])
    t.equal(parseGwei(text), undefined, text)
})

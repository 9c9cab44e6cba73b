import { inspect } from 'node:util'
import t from 'tap'
import { fc } from '../../../support/fast-check.ts'
import { toMicros } from '../../../../src/engine/base/money.ts'
import { computeMetered, isCount, priceOfMissing } from '../../../../src/engine/catalog/price/meter.ts'
import type { Meter } from '../../../../src/engine/catalog/price/price.ts'

const CHAT: Meter = {
  base: '0.0002',
  counts: [
    { counter: 'value_of', of: '/in', unit: '1000', price: '0.0005' },
    { counter: 'value_of', of: '/out', unit: '1000', price: '0.0015' },
  ],
}
const MOST = toMicros(1_000_000_000n)

/** A decimal in steps of 10^-400, by shifting its digits. */
function steps(decimal: string): bigint {
  const [digits = '', exponent = '0'] = decimal.split('e')
  const [whole = '0', fraction = ''] = digits.split('.')
  const places = 400 - fraction.length + Number(exponent)
  return BigInt(whole + fraction) * 10n ** BigInt(places)
}

t.test('costs a part of a unit in proportion, rounded up once', async (t) => {
  for (const [used, amount] of [
    [[0, 0], 200n],
    [[1, 0], 201n],
    [[2, 0], 201n],
    [[3, 0], 202n],
    [[1, 1], 202n],
    [[3, 0.333], 202n],
    [[1e-7, 0], 201n],
    [[5e-324, 0], 201n],
    [[1234, 77], 933n],
  ] as const)
    t.equal(computeMetered(CHAT, used, MOST).amount, amount, JSON.stringify(used))
})

t.test('costs what an independent computation gives, for 500 random usages', async (t) => {
  const count = fc.oneof(
    fc.nat(10_000_000),
    fc.double({ min: 0, max: 1e6, noNaN: true, noDefaultInfinity: true }),
  )
  const decimal = fc
    .tuple(fc.nat(50), fc.nat(999_999_999))
    .map(([a, b]) => `${a}.${String(b).padStart(9, '0')}`)
  const unit = fc.constantFrom('1', '1000', '1000000', '0.5', '3')
  const property = fc.property(count, count, decimal, unit, (one, two, price, size) => {
    const meter: Meter = {
      base: '0.000000000001',
      counts: [
        { counter: 'value_of', of: '/one', unit: size, price },
        { counter: 'usage_of', of: 'two', unit: '7', price: '0.000000000003' },
      ],
    }
    // All terms times 7 and times the unit, in steps of 10^-400 each.
    const [first, second, each, unitSize] = [String(one), String(two), price, size].map(steps)
    if (first === undefined || second === undefined || each === undefined || unitSize === undefined)
      return false
    const E = 10n ** 400n
    const small = E / 10n ** 12n
    // sum = base + one * price / size + two * 3e-12 / 7
    const above = small * 7n * unitSize * E + first * each * 7n * E + second * 3n * small * unitSize
    const below = 7n * unitSize * E * E
    const micros = (above * 1_000_000n + below - 1n) / below
    return computeMetered(meter, [one, two], toMicros(10n ** 30n)).amount === micros
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

t.test('costs at least the minimum, and never more than the ceiling', async (t) => {
  const meter = { ...CHAT, min: '0.001' }
  t.match(computeMetered(meter, [0, 0], MOST), { amount: 1_000n })
  t.match(computeMetered(meter, [0, 0], MOST).parts.at(-1), { part: 'min', amount: '0.001' })
  t.match(computeMetered(meter, [1e9, 0], toMicros(50_000n)), { amount: 50_000n, bound: 'ceiling' })
  t.match(computeMetered(meter, [0, 0], toMicros(500n)), { amount: 500n, bound: 'ceiling' })
  t.match(priceOfMissing({ ...CHAT, if_missing: '0.1' }, toMicros(50_000n)), { amount: 50_000n })
  t.match(priceOfMissing({ ...CHAT, if_missing: '0' }, MOST), { amount: 0n })
  t.equal(priceOfMissing(CHAT, MOST), undefined)
  const property = fc.property(fc.nat(), fc.nat(), fc.bigInt(0n, 10n ** 9n), (one, two, ceiling) => {
    return computeMetered(meter, [one, two], toMicros(ceiling)).amount <= ceiling
  })
  t.doesNotThrow(() => fc.assert(property))
})

t.test('takes only numbers with an exact value for counts', async (t) => {
  for (const value of [0, 1, 0.1, -0, Number.MAX_SAFE_INTEGER]) t.ok(isCount(value), String(value))
  for (const value of [-1, NaN, Infinity, -Infinity, 1e16, '1', null, undefined, true, [1], { a: 1 }, 1n])
    t.notOk(isCount(value), inspect(value))
})

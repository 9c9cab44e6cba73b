import t from 'tap'
import { formatPrice, formatShort, parsePrice, toMicros } from '../../../src/engine/base/money.ts'
import { toAtomic } from '../../../src/engine/x402/requirements.ts'
import { fc } from '../../support/fast-check.ts'

const micros = fc.bigInt({ min: 1n, max: 1_000_000_000_000n }).map(toMicros)
const priceOf = (text: string): bigint | string => {
  const parsed = parsePrice(text)
  return parsed.kind === 'price' ? parsed.value : parsed.fault
}

t.test('charges a price exactly as it is written', async (t) => {
  const written: readonly (readonly [string, bigint])[] = [
    ['0.000001', 1n],
    ['0.001', 1000n],
    ['0.005', 5000n],
    ['0.005000000', 5000n],
    ['0.1', 100_000n],
    ['0.2', 200_000n],
    ['0.3', 300_000n],
    ['0.29', 290_000n],
    ['1', 1_000_000n],
    ['1.10', 1_100_000n],
    ['8.2', 8_200_000n],
    ['1.005', 1_005_000n],
    ['999999.999999', 999_999_999_999n],
    ['1000000', 1_000_000_000_000n],
  ]
  for (const [text, value] of written) t.equal(priceOf(text), value, text)
})

t.test('refuses a price other than a plain positive decimal, by its name', async (t) => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    price_not_decimal: [
      '',
      ' 1',
      '1 ',
      '1e-7',
      '1E3',
      '.5',
      '5.',
      '00.5',
      '01',
      '+1',
      '1,000',
      '0,5',
      '1_000',
      '$1',
    ],
    price_too_precise: ['0.0000001', '1.0000001', '0.12345678'],
    price_not_positive: ['0', '0.0', '0.000000', '-1', '-0.005', '-0'],
    price_too_large: ['1000000.000001', '1000001', '5000000000', '9'.repeat(400)],
  }
  for (const [fault, texts] of Object.entries(refused))
    for (const text of texts) t.equal(priceOf(text), fault, text)
  for (const text of ['NaN', 'Infinity', '0x10', '١', '1n', '--1', '1.2.3', '1\n']) {
    t.equal(priceOf(text), 'price_not_decimal', JSON.stringify(text))
  }
})

t.test('keeps every price when it is printed and read again', async () => {
  fc.assert(fc.property(micros, (price) => priceOf(formatPrice(price)) === price))
  fc.assert(fc.property(micros, (price) => priceOf(formatShort(price)) === price))
})

t.test('keeps every digit of a price', async () => {
  const digits = fc.tuple(fc.bigInt({ min: 0n, max: 999_999n }), fc.bigInt({ min: 1n, max: 999_999n }))
  fc.assert(
    fc.property(digits, ([whole, fraction]) => {
      const text = `${whole}.${fraction.toString().padStart(6, '0')}`
      const price = priceOf(text)
      return (
        typeof price === 'bigint' &&
        price === whole * 1_000_000n + fraction &&
        formatPrice(toMicros(price)) === text
      )
    }),
  )
})

t.test('reads a whole number or reports an error, for any text', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.,eE+-]{0,12}$/)), (text) => {
      const parsed = parsePrice(text)
      return parsed.kind === 'fault' || (typeof parsed.value === 'bigint' && parsed.value > 0n)
    }),
  )
})

t.test('prints a price in as few digits as it needs, and two at least', async (t) => {
  t.equal(formatShort(toMicros(5000n)), '0.005')
  t.equal(formatShort(toMicros(250_000n)), '0.25')
  t.equal(formatShort(toMicros(1_000_000n)), '1.00')
  t.equal(formatShort(toMicros(1_500_000n)), '1.50')
  t.equal(formatShort(toMicros(1n)), '0.000001')
  t.equal(formatPrice(toMicros(5000n)), '0.005000')
  t.equal(formatPrice(toMicros(0n)), '0.000000')
})

t.test('charges the same value in a token of any precision, or refuses', async (t) => {
  t.equal(toAtomic(toMicros(5000n), 6), 5000n)
  t.equal(toAtomic(toMicros(5000n), 18), 5_000_000_000_000_000n)
  t.equal(toAtomic(toMicros(5000n), 3), 5n)
  t.equal(toAtomic(toMicros(2_000_000n), 0), 2n)
  t.throws(() => toAtomic(toMicros(5000n), 2), RangeError)
  t.throws(() => toAtomic(toMicros(1n), 5), { message: '0.000001 USD has no exact value in 5 decimals' })
  fc.assert(
    fc.property(micros, fc.integer({ min: 6, max: 24 }), (price, decimals) => {
      const atomic = toAtomic(price, decimals)
      return atomic / 10n ** BigInt(decimals - 6) === price && atomic % 10n ** BigInt(decimals - 6) === 0n
    }),
  )
})

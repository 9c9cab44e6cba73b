import t from 'tap'
import { moneyFromHundredths } from '../../../../src/service/sources/shown-money.ts'
import { fc } from '../../../support/fast-check.ts'

t.test('keeps the value of a price in currencies with two, zero and three decimals', async (t) => {
  t.same(moneyFromHundredths(1999n, 'USD'), {
    amount: 19.99,
    amount_minor: 1999,
    currency: 'USD',
    formatted: '$19.99',
  })
  t.same(moneyFromHundredths(199900n, 'JPY'), {
    amount: 1999,
    amount_minor: 1999,
    currency: 'JPY',
    formatted: '¥1,999',
  })
  t.match(moneyFromHundredths(450n, 'KWD'), { amount: 4.5, amount_minor: 4500 })
  t.match(moneyFromHundredths(8999900n, 'IDR'), { amount: 89999, amount_minor: 8999900 })
  t.match(moneyFromHundredths(5n, 'EUR'), { amount: 0.05, amount_minor: 5, formatted: '€0.05' })
  t.match(moneyFromHundredths(0n, 'EUR'), { amount: 0, amount_minor: 0 })
})

t.test('keeps the source’s own wording', async (t) => {
  t.equal(moneyFromHundredths(400n, 'EUR', '4,--€').formatted, '4,--€')
  t.equal(moneyFromHundredths(400n, 'EUR', null).formatted, '€4.00')
})

t.test('refuses half a yen', async (t) => {
  t.throws(() => moneyFromHundredths(199950n, 'JPY'), RangeError)
})

t.test('states the same amount in decimals and in minor units', async () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 999_999_999_999n), (hundredths) => {
      const { amount, amount_minor } = moneyFromHundredths(hundredths, 'USD')
      return (
        amount_minor === Number(hundredths) &&
        amount.toFixed(2).replace('.', '') === `${hundredths}`.padStart(3, '0')
      )
    }),
  )
})

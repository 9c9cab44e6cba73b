import t from 'tap'
import { findMeterRises } from '../../../../src/cli/plan/price-change.ts'
import { readMeter } from '../../../../src/engine/catalog/price/meter.ts'
import type { Count, Meter } from '../../../../src/engine/catalog/price/price.ts'

const TOKENS: Count = { counter: 'value_of', of: '/tokens', unit: '1000', price: '0.0005' }
const CHAT: Meter = { base: '0.0002', counts: [TOKENS] }

t.test('names the count whose price rises', async (t) => {
  const dearer: Meter = { ...CHAT, counts: [{ ...TOKENS, price: '0.001' }] }
  t.match(findMeterRises(CHAT, dearer), [{ line: 'value_of /tokens = 1000: 0.000700 → 0.001200 USD' }])
  t.strictSame(findMeterRises(dearer, CHAT), [])
  const smaller: Meter = { ...CHAT, counts: [{ ...TOKENS, unit: '500' }] }
  t.equal(findMeterRises(CHAT, smaller).length, 1, 'a smaller unit')
  const another = {
    ...CHAT,
    counts: [...CHAT.counts, { counter: 'bytes_of', of: 'answer', unit: '1', price: '0.000001' }],
  } as const
  t.match(findMeterRises(CHAT, another), [{ line: 'bytes_of answer = 1000: 0.000200 → 0.001200 USD' }])
})

t.test('names a price that rises whatever is used', async (t) => {
  t.match(findMeterRises(CHAT, { ...CHAT, min: '0.001' }), [
    { line: 'an answer that has used nothing: 0.000200 → 0.001000 USD' },
  ])
  t.strictSame(findMeterRises(undefined, CHAT), [], 'the ceiling is compared with the price before')
})

t.test('reads a meter as OpenAPI publishes it, and no other text', async (t) => {
  const published = { ...CHAT, min: '0.001', example: '0.001', ceiling: { min: '0.05', max: '0.05' } }
  t.strictSame(readMeter(JSON.stringify(published)), { ...CHAT, min: '0.001' })
  for (const text of ['', '{}', 'null', '{"base":"x","counts":[]}']) t.equal(readMeter(text), undefined, text)
})

import t from 'tap'
import { toMicros } from '../../../../src/engine/base/money.ts'
import type { Meter } from '../../../../src/engine/catalog/price/price.ts'
import type { StoredAnswer } from '../../../../src/engine/ledger/payment-record.ts'
import { meterWork } from '../../../../src/engine/purchase/metering.ts'
import { endOf } from '../../../../src/engine/purchase/usage-documents.ts'

const CEILING = toMicros(10_000n)

function meterOf(counter: 'value_of' | 'usage_of' | 'bytes_of' | 'seconds_of', of: string): Meter {
  return { base: '0', counts: [{ counter, of, unit: '1', price: '0.000001' }] }
}

/** What an answer costs, in micro-dollars, or why it does not; and what the operator reads. */
function priceOf(
  meter: Meter,
  answer: StoredAnswer,
  { usage, took = 0 }: { readonly usage?: unknown; readonly took?: number } = {},
): { readonly cost: bigint | string; readonly log: readonly string[] } {
  const log: string[] = []
  const report = (fault: unknown): void => {
    log.push(fault instanceof Error ? fault.message : String(fault))
  }
  const operation = { id: 'chat', meter, ceiling: CEILING, report }
  try {
    return { cost: meterWork(operation, { answer: endOf(answer), usage, took }).amount, log }
  } catch (fault) {
    return { cost: fault instanceof Error && 'code' in fault ? String(fault.code) : 'another error', log }
  }
}

const json = (value: object): StoredAnswer => ({ kind: 'json', value: JSON.parse(JSON.stringify(value)) })
const text = (type: string, content: string): StoredAnswer => ({ kind: 'text', type, text: content })
const events = (...data: readonly string[]): StoredAnswer =>
  text('text/event-stream', data.map((each) => `data: ${each}\n\n`).join(''))

t.test('counts a member of the answer, wherever a JSON Pointer finds it', async (t) => {
  for (const [pointer, answer, cost] of [
    ['/usage/total', json({ usage: { total: 12 } }), 12n],
    ['/items/1/n', json({ items: [{ n: 1 }, { n: 2 }] }), 2n],
    ['/a~1b/c~0d', json({ 'a/b': { 'c~d': 3 } }), 3n],
    ['/', json({ '': 4 }), 4n],
    ['/n', text('application/json', '{"n":5}'), 5n],
    ['/n', text('application/problem+json; charset=utf-8', '{"n":6}'), 6n],
    ['/n', { kind: 'bytes', type: 'application/json', bytes: Buffer.from('{"n":7}') }, 7n],
    ['/n', text('application/x-ndjson', '{"n":1}\n{"n":8}\n{"m":1}\n'), 8n],
  ] as const)
    t.strictSame(priceOf(meterOf('value_of', pointer), answer), { cost, log: [] }, pointer)
})

t.test('counts the last event of a stream that has the member', async (t) => {
  const meter = meterOf('value_of', '/usage/total')
  for (const [stream, cost] of [
    [events('{"usage":{"total":1}}', '{"usage":{"total":9}}', '{"choices":[]}', '[DONE]'), 9n],
    [events('{"usage":null}', '{"usage":{"total":10}}', '{"usage":null}'), 10n],
    [text('text/event-stream', 'event: end\r\ndata: {"usage":\r\ndata: {"total":11}}\r\n\r\n'), 11n],
    [events('x'.repeat(50_000), '{"usage":{"total":12}}'), 12n],
    // It is looked for in the last 16 KiB.
    [events('{"usage":{"total":13}}', 'x'.repeat(20_000)), 'usage_missing'],
    [events('{"usage":{"tot'), 'usage_missing'],
  ] as const)
    t.equal(priceOf(meter, stream).cost, cost)
})

t.test(
  'counts what the handler returns, the bytes that are sent, and the time that work takes',
  async (t) => {
    const { cost } = priceOf(meterOf('usage_of', 'credits'), json({}), { usage: { credits: 2.5 } })
    t.equal(cost, 3n, 'rounded up')
    t.equal(priceOf(meterOf('bytes_of', 'answer'), json({ text: 'ä' })).cost, 13n)
    t.equal(priceOf(meterOf('seconds_of', 'work'), json({}), { took: 1_500 }).cost, 2n)
    t.equal(
      priceOf(meterOf('seconds_of', 'work'), json({}), { took: -5 }).cost,
      0n,
      'a clock that was set back',
    )
  },
)

t.test('never takes nonsense for a count, and tells the operator without repeating texts', async (t) => {
  for (const [n, found] of [
    [-1, '-1, which is no count'],
    [1e300, '1e+300, which is no count'],
    ['12 secret', 'of type string'],
    [null, 'null'],
    [[12], 'a list'],
    [{ n: 1 }, 'of type object'],
    [true, 'of type boolean'],
    [undefined, 'missing'],
  ] as const) {
    const { cost, log } = priceOf(meterOf('value_of', '/n'), json({ n }))
    t.equal(cost, 'usage_missing')
    t.strictSame(log, [
      `the usage of chat is not known, and its answer is withheld and not charged: value_of /n is ${found}`,
    ])
  }
  for (const usage of [undefined, null, 'credits', { credits: NaN }, { credits: Infinity }, { credits: '1' }])
    t.equal(priceOf(meterOf('usage_of', 'credits'), json({}), { usage }).cost, 'usage_missing')
  for (const usage of [Promise.resolve({ credits: 1 }), { credits: Promise.resolve(1) }]) {
    const { cost, log } = priceOf(meterOf('usage_of', 'credits'), json({}), { usage })
    t.equal(cost, 'usage_missing')
    t.match(log, [/usage_of credits is a promise, which the handler has to await before it answers$/])
  }
  const inherited = priceOf(meterOf('value_of', '/toString/length'), json({}))
  t.equal(inherited.cost, 'usage_missing', 'members of JavaScript objects are none of the answer')
})

t.test(
  'charges the price of a missing count, and the ceiling for more, and tells the operator',
  async (t) => {
    const meter = { ...meterOf('value_of', '/n'), if_missing: '0.002' }
    const missing = priceOf(meter, json({}))
    t.equal(missing.cost, 2_000n)
    t.match(missing.log, [/0\.002 USD is charged by "if_missing": value_of \/n is missing/])
    const over = priceOf(meter, json({ n: 10_001 }))
    t.equal(over.cost, 10_000n)
    t.match(over.log, [
      /chat costs more than its ceiling of 0\.01 USD, which is charged: value_of \/n is 10001/,
    ])
  },
)

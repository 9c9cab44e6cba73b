import t, { type Test } from 'tap'
import { rpc } from '../../../support/mcp.ts'
import { offersOf, openBank, openTabShop, tabPayment, type TabOffer } from '../../../support/tab-shop.ts'
import { until } from '../../../support/until.ts'

const RESOURCE = 'http://127.0.0.1'

interface Receipt {
  readonly amount: string
  readonly extra: { readonly charged: string; readonly usage?: readonly { part: string; count?: number }[] }
}

function receiptOf(response: Response): Receipt {
  const said = response.headers.get('payment-response') ?? ''
  const receipt: Receipt = JSON.parse(Buffer.from(said, 'base64').toString())
  return receipt
}

/** A shop with metered prices, and buyers that keep a tab each. */
async function openMeters(t: Test) {
  const bank = await openBank(t)
  const shop = await openTabShop(t, 'metered-shop/shop.ts', bank.url)
  const charged = new Map<string, string>()
  const buy = async (
    payer: string,
    path: string,
    says: unknown,
    more = '',
  ): Promise<{ response: Response; receipt: Receipt | undefined; body: string }> => {
    const url = `${path}?says=${encodeURIComponent(JSON.stringify(says))}${more}`
    const [offer] = offersOf(await fetch(shop.url + url))
    if (offer === undefined) throw new Error('nothing is offered')
    const base = charged.get(payer) ?? '0'
    const header = tabPayment(RESOURCE + path, offer, { payer, base })
    const response = await fetch(shop.url + url, { headers: { 'PAYMENT-SIGNATURE': header } })
    const body = await response.text()
    const receipt = response.status === 200 ? receiptOf(response) : undefined
    if (receipt !== undefined) charged.set(payer, receipt.extra.charged)
    return { response, receipt, body }
  }
  return { bank, shop, buy }
}

t.test('charges what an answer has used, and says what that was', async (t) => {
  const { bank, buy } = await openMeters(t)
  const { response, receipt, body } = await buy('Alice', '/paid/chat', {
    usage: { prompt_tokens: 1234, completion_tokens: 77 },
  })
  t.equal(response.status, 200, body)
  // 200 + 1234 * 0.5 + 77 * 1.5 micro-dollars.
  t.match(receipt, {
    amount: '933',
    extra: {
      charged: '933',
      usage: [
        { part: 'base', amount: '0.0002' },
        { part: 'value_of /usage/prompt_tokens', count: 1234, amount: '0.000617' },
        { part: 'value_of /usage/completion_tokens', count: 77, amount: '0.0001155' },
      ],
    },
  })
  await until('the tab is claimed', () => bank.claims.get('Alice') === '933')
})

t.test('charges the ceiling for more, nothing for nothing, and the price of a missing count', async (t) => {
  const { buy, shop } = await openMeters(t)
  const over = await buy('Bob', '/paid/chat', { usage: { prompt_tokens: 1e9, completion_tokens: 0 } })
  t.match(over.receipt, { amount: '50000' })
  t.match(over.receipt?.extra.usage?.at(-1), { part: 'ceiling', amount: '0.05' })
  const nothing = await buy('Zoe', '/paid/nothing', { n: 0 })
  t.equal(nothing.response.status, 200)
  t.match(nothing.receipt, { amount: '0', extra: { charged: '0' } })
  const missing = await buy('Bob', '/paid/fallback', { other: 1 })
  t.match(missing.receipt, { amount: '2000', extra: { usage: [{ part: 'if_missing' }] } })
  const least = await buy('Bob', '/paid/fallback', { n: 0.25 })
  t.match(least.receipt, { amount: '500' })
  t.match((await buy('Bob', '/paid/reported', { credits: 2.5 })).receipt, { amount: '2500' })
  const sized = await buy('Bob', '/paid/sized', { text: 'ä'.repeat(100) })
  t.equal(sized.receipt?.amount, String(Buffer.byteLength(sized.body)), 'the bytes that were sent')
  t.match((await buy('Bob', '/paid/asked', { n: 30 }, '&most=20')).receipt, { amount: '3000' })
  t.match((await buy('Bob', '/paid/asked', { n: 31 }, '&most=20')).receipt, { amount: '3000' })
  await until('the operator reads of the ceiling', () => shop.log().includes('costs more than its ceiling'))
})

t.test('withholds an answer whose count is nonsense, charges nothing, and tells the operator', async (t) => {
  const { buy, shop } = await openMeters(t)
  for (const [n, found] of [
    [-1, '-1, which is no count'],
    [1e16, '10000000000000000, which is no count'],
    ['12', 'of type string'],
    [null, 'null'],
    [[1], 'a list'],
    [{ total: 1 }, 'of type object'],
    [true, 'of type boolean'],
    [undefined, 'missing'],
    ['NaN', 'null'],
  ] as const) {
    const { response, body } = await buy('Carol', '/paid/nothing', { n })
    t.equal(response.status, 502, body)
    t.match(JSON.parse(body), { code: 'usage_missing', charged: 'no' })
    await until(`the operator reads that it is ${found}`, () =>
      shop.log().includes(`value_of /n is ${found}`),
    )
  }
  for (const [credits, found] of [
    ['NaN', 'NaN, which is no count'],
    [-2, '-2, which is no count'],
    [1e16, '10000000000000000, which is no count'],
    [null, 'null'],
    [undefined, 'missing'],
  ] as const) {
    const { response } = await buy('Carol', '/paid/reported', { credits })
    t.equal(response.status, 502)
    await until(`the operator reads that what a handler reports is ${found}`, () =>
      shop.log().includes(`usage_of credits is ${found}`),
    )
  }
  for (const [how, found] of [
    ['a count', 'a promise, which the handler has to await before it answers'],
    ['all of it', 'a promise, which the handler has to await before it answers'],
    ['afterwards', 'missing'],
  ] as const) {
    const { response } = await buy('Carol', '/paid/late', how)
    t.equal(response.status, 502)
    const line = `the usage of late is not known, and its answer is withheld and not charged: usage_of credits is ${found}`
    await until(`the operator reads of usage that comes late: ${how}`, () => shop.log().includes(line))
  }
  t.match((await buy('Carol', '/paid/nothing', { n: 1 })).receipt, {
    amount: '1000',
    extra: { charged: '1000' },
  })
})

t.test('charges a stream for the usage of its last event, and one that breaks off nothing', async (t) => {
  const { buy } = await openMeters(t)
  const { receipt, body, response } = await buy('Eve', '/paid/flow', { text: 'Hello', usage: { total: 7 } })
  t.equal(response.headers.get('content-type'), 'text/event-stream')
  t.equal(body, 'data: {"text":"Hello"}\n\ndata: {"usage":{"total":7}}\n\n')
  t.match(receipt, { amount: '700', extra: { usage: [{ part: 'value_of /usage/total', count: 7 }] } })
  const broken = await buy('Eve', '/paid/flow', { text: 'Hello', break: true })
  t.match(JSON.parse(broken.body), { charged: 'no' })
  const silent = await buy('Eve', '/paid/flow', { text: 'Hello' })
  t.match(JSON.parse(silent.body), { code: 'usage_missing', charged: 'no' })
  t.match((await buy('Eve', '/paid/flow', { usage: { total: 1 } })).receipt, { extra: { charged: '800' } })
  const late = await buy('Eve', '/paid/flow', { done: '[DONE]', usage: { total: 2 } })
  t.match(late.receipt, { amount: '200' }, 'usage after what looks like the end')
})

t.test('charges a tool call what it has used, under _meta', async (t) => {
  const { shop } = await openMeters(t)
  const call = async (name: string, says: unknown, header?: string) => {
    const _meta = header === undefined ? {} : { 'x402/payment': header }
    const params = { name, arguments: { says: JSON.stringify(says) }, _meta }
    const { result, error } = await rpc(`${shop.url}/mcp/words`, 'tools/call', params)
    if (result === undefined) throw new Error(`no result: ${JSON.stringify(error)}`)
    return result
  }
  for (const [payer, name, says, amount] of [
    ['Fay', 'chat', { usage: { prompt_tokens: 1000, completion_tokens: 0 } }, '700'],
    ['Guy', 'flow', { usage: { total: 5 } }, '500'],
  ] as const) {
    const asked = await call(name, says)
    const told: { readonly accepts: readonly TabOffer[]; readonly price: unknown } = JSON.parse(
      JSON.stringify(asked['structuredContent']),
    )
    const { accepts, price } = told
    t.match(price, { rule: /counted after the work/, max: String, currency: 'USD' })
    const [offer] = accepts
    if (offer === undefined) throw new Error('nothing is offered')
    const header = tabPayment(`${RESOURCE}/mcp/words`, offer, { payer })
    const { _meta } = await call(name, says, header)
    t.match(_meta, { 'x402/payment-response': { success: true, amount, extra: { usage: Array } } })
  }
})

t.test('delivers an answer again for its payment, and charges once across kills', async (t) => {
  const { bank, shop } = await openMeters(t)
  const url = `/paid/nothing?says=${encodeURIComponent('{"n":3}')}`
  const [offer] = offersOf(await fetch(shop.url + url))
  if (offer === undefined) throw new Error('nothing is offered')
  const header = tabPayment(`${RESOURCE}/paid/nothing`, offer, { payer: 'Dora' })
  const pay = (): Promise<Response> => fetch(shop.url + url, { headers: { 'PAYMENT-SIGNATURE': header } })
  let goOn = (): void => undefined
  bank.hold = new Promise((resolve) => (goOn = resolve))
  const lost = pay().catch(() => 'lost')
  await until('the work has begun', () => bank.runs === 1)
  await shop.kill()
  t.equal(await lost, 'lost')
  goOn()
  bank.hold = undefined
  await shop.restart()
  const bought = await pay()
  const body = await bought.text()
  t.equal(bought.status, 200, body)
  t.match(receiptOf(bought), { amount: '3000', extra: { charged: '3000' } })
  await shop.kill()
  await shop.restart()
  const again = await pay()
  t.equal(await again.text(), body)
  t.match(receiptOf(again), { amount: '3000', extra: { charged: '3000', usage: [{ count: 3 }] } })
  t.equal(bank.runs, 2)
})

t.test('offers a metered route by schemes that can charge less, and says what a client needs', async (t) => {
  const { shop } = await openMeters(t)
  const response = await fetch(`${shop.url}/paid/chat?says=%7B%7D`)
  t.same(
    offersOf(response).map(({ scheme, amount }) => ({ scheme, amount })),
    [{ scheme: 'tab', amount: '50000' }],
  )
  t.match(await response.json(), { detail: /at most \$0\.05/ })
})

import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listening } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import { addressOf, challengeOf, randomKey, type Challenge, type Hex } from '../../../support/payment.ts'
import { randomBytes } from '../../../support/random.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { signPermit, uptoFetch } from '../../../support/upto.ts'
import { until } from '../../../support/until.ts'

const MUCH = 2n ** 255n
/** Atomic units of a dollar cent. */
const CEILING = 50_000n

const catalogOf = (model: string): string => `catalog: 1
service: { name: Words of a model, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base], timeout: 60s } }
mcp_servers: { tools: { title: Words as tools } }
routes:
  POST /v1/chat:
    tool: tools.chat
    handler: proxy
    upstream: ${model}/chat
    price: &price
      base: 0.0002
      metered:
        - { value_of: /usage/prompt_tokens, unit: 1000, price: 0.0005 }
        - { value_of: /usage/completion_tokens, unit: 1000, price: 0.0015 }
      ceiling: 0.05
    summary: An answer of a model
    body: &body
      properties:
        usage: { type: string, required: true, maxLength: 200, example: '{}' }
    response: { schema: { type: object, additionalProperties: true } }
    example: { usage: { prompt_tokens: 1000, completion_tokens: 200 } }
  POST /v1/events:
    handler: proxy
    upstream: ${model}/events
    price: *price
    summary: The same as events
    body: *body
    response: { stream: true, media_type: text/event-stream }
  POST /v1/live:
    handler: proxy
    upstream: ${model}/live
    price:
      base: 0.0002
      metered:
        - { value_of: /usage/prompt_tokens, unit: 1000, price: 0.0005 }
        - { value_of: /usage/completion_tokens, unit: 1000, price: 0.0015 }
      ceiling: 0.05
      if_missing: 0.03
    summary: The same as events, sent while they come
    body: *body
    response: { stream: true, media_type: text/event-stream, receipt_event: true }
  POST /v1/free:
    handler: proxy
    upstream: ${model}/chat
    price: { metered: [{ value_of: /usage/total, price: 0.001 }], ceiling: 0.01 }
    summary: An answer that may cost nothing
    body: *body
    response: { schema: { type: object, additionalProperties: true } }
    example: { usage: { total: 2 } }
`

interface Usage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly total?: number
}

/** A model that reports the usage that the prompt names, whole or in the last of its events. */
async function openModel() {
  let runs = 0
  let during = async (): Promise<'end' | 'break'> => 'end'
  const server = createServer((request, response) => {
    runs += 1
    void json(request).then((body) => {
      const { usage } = body as { readonly usage: string }
      if (request.url === '/chat')
        return response.setHeader('content-type', 'application/json').end(`{"text":"hello","usage":${usage}}`)
      response.setHeader('content-type', 'text/event-stream')
      response.write('data: {"text":"hello"}\n\n')
      if (request.url === '/live')
        return during().then((end) =>
          end === 'end' ? response.end(`data: {"usage":${usage}}\n\n`) : response.destroy(),
        )
      return response.end(`data: {"usage":${usage}}\n\n`)
    })
  })
  return {
    ...(await listening(server)),
    runs: () => runs,
    /** What happens between the first event of a stream and its last. */
    onStream: (happens: typeof during) => {
      during = happens
    },
  }
}

/** Computed apart from the code under test: tenths of a micro-dollar, rounded up once. */
function due({ prompt_tokens: prompt = 0, completion_tokens: completion = 0 }: Usage): bigint {
  const tenths = 2_000n + BigInt(prompt) * 5n + BigInt(completion) * 15n
  const amount = (tenths + 9n) / 10n
  return amount < CEILING ? amount : CEILING
}

async function openWords(t: Test) {
  const model = await openModel()
  const catalog = join(t.testdir(), 'catalog.yaml')
  writeFileSync(catalog, catalogOf(model.url))
  const shop = await openShop(async () => ({ CATALOG: catalog }), [])
  t.teardown(async () => {
    await shop.close()
    await model.close()
  })
  return { model, shop }
}

async function wallet(shop: Shop): Promise<Hex> {
  const key = await shop.wallet()
  await shop.onchain.approvePermit2(addressOf(key), MUCH)
  return key
}

const asking = (usage: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ usage: JSON.stringify(usage) }),
})

function amountOf(response: Response): string {
  const said = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString()
  const { amount }: { readonly amount: string } = JSON.parse(said)
  return amount
}

t.test('moves on the chain what each answer has used, for the client of x402', async (t) => {
  const { shop } = await openWords(t)
  const received = (): Promise<bigint[]> => shop.onchain.received(shop.payTo)
  const buy = uptoFetch(await wallet(shop))

  await t.test('random usages, whole and as events', async (t) => {
    const below = (limit: number): number => randomBytes(4).readUInt32BE() % limit
    const before = (await received()).length
    const wanted: bigint[] = []
    for (let count = Number(process.env['USAGES'] ?? 24); count > 0; count -= 1) {
      const usage = {
        prompt_tokens: below(count % 5 === 0 ? 1_000_000 : 20_000),
        completion_tokens: below(5_000),
      }
      const path = count % 3 === 0 ? '/v1/events' : '/v1/chat'
      const response = await buy(shop.url + path, asking(usage))
      const body = await response.text()
      t.equal(response.status, 200, body)
      t.match(body, String(usage.prompt_tokens))
      t.equal(amountOf(response), String(due(usage)))
      wanted.push(due(usage))
    }
    t.same((await received()).slice(before), wanted)
  })

  await t.test('a tool', async (t) => {
    const url = `${shop.url}/mcp/tools`
    const usage = { prompt_tokens: 10, completion_tokens: 4 }
    const args = { usage: JSON.stringify(usage) }
    const asked = await callTool(url, 'chat', args)
    const payment = await signPermit(asked.content as unknown as Challenge, await wallet(shop))
    const bought = await callTool(url, 'chat', args, { meta: { 'x402/payment': payment.payload } })
    t.equal(bought.isError, false)
    t.match(bought.meta['x402/payment-response'], { success: true, amount: String(due(usage)) })
    t.equal((await received()).at(-1), due(usage))
  })

  await t.test('nothing for nothing, once for each payment', async (t) => {
    const before = (await received()).length
    const free = await buy(`${shop.url}/v1/free`, asking({ total: 0 }))
    t.equal(free.status, 200)
    t.equal(amountOf(free), '0')
    const some = await buy(`${shop.url}/v1/free`, asking({ total: 3 }))
    t.equal(amountOf(some), '3000')
    t.equal((await received()).length, before + 1)
  })

  await t.test('nothing for an answer that does not say what it used', async (t) => {
    const before = (await received()).length
    for (const [prompt_tokens, found] of [
      [undefined, 'missing'],
      [-1, '-1, which is no count'],
      [1e16, '10000000000000000, which is no count'],
      // JSON has no NaN: libraries write null.
      [null, 'null'],
      ['many', 'of type string'],
      [[1], 'a list'],
    ] as const) {
      const response = await buy(`${shop.url}/v1/chat`, asking({ prompt_tokens, completion_tokens: 1 }))
      t.match(await response.json(), { code: 'usage_missing', charged: 'no' })
      await until(`the operator reads that it is ${found}`, () =>
        shop.output().includes(`value_of /usage/prompt_tokens is ${found}`),
      )
    }
    t.equal((await received()).length, before)
  })
})

t.test('charges the recorded amount once when the process dies before the transfer is mined', async (t) => {
  const { shop, model } = await openWords(t)
  const usage = { prompt_tokens: 500, completion_tokens: 30 }
  const key = await wallet(shop)
  const url = `${shop.url}/v1/chat`
  const asked = await fetch(url, asking(usage))
  const challenge: Challenge = JSON.parse(
    Buffer.from(asked.headers.get('payment-required') ?? '', 'base64').toString(),
  )
  const { header } = await signPermit(challenge, key)
  const pay = (): Promise<Response> => {
    const { headers, ...rest } = asking(usage)
    return fetch(`${shop.url}/v1/chat`, { ...rest, headers: { ...headers, 'PAYMENT-SIGNATURE': header } })
  }
  await shop.onchain.setMining('manual')
  const lost = pay().then(
    () => 'answered',
    () => 'lost',
  )
  await until('the transfer is sent', () => shop.node.calls().includes('eth_sendRawTransaction'))
  await shop.restart(async () => {
    await shop.onchain.mine()
    await shop.onchain.setMining('automatic')
  })
  t.equal(await lost, 'lost')
  let response = await pay()
  while (response.status === 503) response = await pay()
  t.equal(response.status, 200, await response.text())
  t.equal(amountOf(response), String(due(usage)))
  t.same(await shop.onchain.received(shop.payTo), [due(usage)])
  t.equal(model.runs(), 1)
})

/** A promise, and what resolves it. */
function gate<T>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } {
  let open = (_value: T): void => undefined
  const opened = new Promise<T>((resolve) => (open = resolve))
  return { opened, open }
}

async function firstPiece(response: Response) {
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  return { reader, text: new TextDecoder().decode(value) }
}

/** What comes after the first piece; `broken`: it broke off. */
async function restOf(reader: ReadableStreamDefaultReader<Uint8Array> | undefined) {
  let text = ''
  try {
    for (;;) {
      const next = await reader?.read()
      if (next?.value === undefined) return { text, broken: false }
      text += new TextDecoder().decode(next.value)
    }
  } catch {
    return { text, broken: true }
  }
}

t.test('sends a stream on credit, and charges at its end what it has used', async (t) => {
  const { shop, model } = await openWords(t)
  const received = (): Promise<bigint[]> => shop.onchain.received(shop.payTo)
  const key = await wallet(shop)
  const buy = uptoFetch(key)
  const live = `${shop.url}/v1/live`
  const usage = { prompt_tokens: 700, completion_tokens: 30 }

  await t.test('its bytes before the charge, and last an event that states the charge', async (t) => {
    const { opened, open } = gate<'end'>()
    model.onStream(() => opened)
    const response = await buy(live, asking(usage))
    const { reader, text } = await firstPiece(response)
    t.match(text, 'hello')
    t.equal(response.headers.get('payment-response'), null)
    t.strictSame(await received(), [])
    open('end')
    const rest = await restOf(reader)
    t.equal(rest.broken, false)
    t.match(rest.text, /"usage":.*\n\nevent: receipt\ndata: /s)
    const event = JSON.parse(/event: receipt\ndata: (.*)/.exec(rest.text)?.[1] ?? '{}')
    t.match(event, {
      payment: response.headers.get('ratecard-payment'),
      'x402/payment-response': { success: true, amount: String(due(usage)) },
    })
    t.strictSame(await received(), [due(usage)])
  })

  await t.test('with the account of another process, which its challenge names', async (t) => {
    const other = randomKey()
    await shop.chain.setGas(addressOf(other), 10n ** 18n)
    const elsewhere = await shop.branch({ SETTLER_PRIVATE_KEY: other })
    const before = (await received()).length
    model.onStream(async () => 'end')
    const challenge = await challengeOf(`${elsewhere.url}/v1/live`, (url) => fetch(url, asking(usage)))
    const { header } = await signPermit(challenge, key)
    const headers = { 'content-type': 'application/json', 'payment-signature': header }
    let response = await fetch(live, { ...asking(usage), headers })
    await until('the other process has named its account', async () => {
      if (response.status === 200) return true
      await response.body?.cancel()
      response = await fetch(live, { ...asking(usage), headers })
      return false
    })
    t.match(await response.text(), /"usage":.*\n\nevent: receipt\ndata: .*"success":true/s)
    t.strictSame((await received()).slice(before), [due(usage)])
    await elsewhere.stop()
  })

  await t.test('once, when its buyer has left', async (t) => {
    const before = (await received()).length
    const { opened, open } = gate<'end'>()
    model.onStream(() => opened)
    const { reader } = await firstPiece(await buy(live, asking(usage)))
    await reader?.cancel()
    open('end')
    await until('it is charged', async () => (await received()).length > before)
    t.strictSame((await received()).slice(before), [due(usage)])
  })

  await t.test(
    'the price of a missing count, when it breaks off or does not say what it has used',
    async (t) => {
      const before = (await received()).length
      const { opened, open } = gate<'break'>()
      model.onStream(() => opened)
      const { reader } = await firstPiece(await buy(live, asking(usage)))
      open('break')
      t.equal((await restOf(reader)).broken, true)
      model.onStream(async () => 'end')
      const silent = await buy(live, asking({ prompt_tokens: 3 }))
      t.match(await silent.text(), 'event: receipt')
      t.strictSame((await received()).slice(before), [30_000n, 30_000n])
    },
  )

  await t.test('the third of one payer whole, once it is paid', async (t) => {
    const before = (await received()).length
    const { opened, open } = gate<'end'>()
    const runs = model.runs()
    model.onStream(() => (model.runs() - runs < 3 ? opened : Promise.resolve('end')))
    const [one, other] = await Promise.all([buy(live, asking(usage)), buy(live, asking(usage))])
    const third = await buy(live, asking(usage))
    t.equal(amountOf(third), String(due(usage)))
    t.equal((await received()).length, before + 1)
    await third.text()
    open('end')
    await Promise.all([one.text(), other.text()])
    t.equal((await received()).length, before + 3)
  })

  await t.test(
    'not at all, when its buyer withdraws the allowance: then it buys nothing more for an hour',
    async (t) => {
      const before = (await received()).length
      const { opened, open } = gate<'end'>()
      model.onStream(() => opened)
      const { reader } = await firstPiece(await buy(live, asking(usage)))
      await shop.onchain.approvePermit2(addressOf(key), 0n)
      open('end')
      t.equal((await restOf(reader)).broken, true)
      t.equal((await received()).length, before)
      await until('the log says so', () =>
        shop.output().includes('on credit, and its 0.000595 USD are unpaid'),
      )
      await shop.onchain.approvePermit2(addressOf(key), MUCH)
      const refused = await buy(live, asking(usage))
      t.match(await refused.json(), { code: 'payer_suspended', charged: 'no' })
    },
  )
})

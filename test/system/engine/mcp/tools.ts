import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import t from 'tap'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { answered } from '../../../../src/engine/mcp/tool-reply.ts'
import { at, items } from '../../../support/documents.ts'
import { callTool, listTools, rpc, type Revision, type ToolResult } from '../../../support/mcp.ts'
import {
  addressOf,
  challengeOf,
  encode,
  randomKey,
  send,
  sign,
  type Challenge,
  type Faults,
  type Hex,
} from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/mcp/catalog.yaml', import.meta.url))
const TOOLS_BASE = 'https://tools.example.com'
const shop = await openShop(async () => ({ CATALOG, TOOLS_URL: TOOLS_BASE }))
t.teardown(() => shop.close())
const game = `${shop.url}/mcp/game`
const tools = `${shop.url}/mcp/tools`
const REVISIONS: readonly Revision[] = ['2026-07-28', '2025-06-18']

async function charges(): Promise<number> {
  const [uses, received] = await Promise.all([shop.onchain.uses(), shop.onchain.received(shop.payTo)])
  if (uses.length !== received.length) throw new Error(`${uses.length} uses, ${received.length} transfers`)
  return uses.length
}

/** What an unpaid call is asked for. */
async function demandOf(url: string, name: string, args: JsonObject): Promise<Challenge> {
  const { content } = await callTool(url, name, args)
  return content as unknown as Challenge
}

async function payFor(
  url: string,
  name: string,
  args: JsonObject,
  key: Hex,
  faults: Faults = {},
): Promise<ToolResult> {
  const { payload } = await sign(await demandOf(url, name, args), key, faults)
  return callTool(url, name, args, { meta: { 'x402/payment': payload } })
}

t.test(
  'tells a client of the newest revision what the server speaks and that it is paid by x402',
  async (t) => {
    const { status, result } = await rpc(tools, 'server/discover', {})
    t.equal(status, 200)
    t.match(result, {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {}, extensions: { 'org.x402/payment': {} } },
      instructions:
        /^Tools that only MCP serves\. Most calls cost .*npx ratecard-buyer mcp https:\/\/api\.example\.com --max-per-call/,
    })
    const older = await rpc(
      tools,
      'initialize',
      { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
      { revision: '2025-06-18' },
    )
    t.match(older.result, { protocolVersion: '2025-03-26', capabilities: { tools: {} } })
  },
)

t.test(
  'lists the tools of the catalog in order in every revision, with price and a valid schema',
  async (t) => {
    for (const revision of REVISIONS) {
      const listed = await listTools(tools, { revision })
      t.strictSame(
        listed.map(({ name }) => name),
        ['paint', 'other_work', 'whoami', 'forget', 'scan', 'write_json', 'write_list'],
        'without what lacks a setting',
      )
      t.strictSame(listed, await listTools(tools, { revision }), 'the same again')
      for (const { inputSchema } of listed)
        t.ok(new Ajv2020({ strict: false }).compile(inputSchema as object))
    }
    const [paint, work, whoami, forget] = await listTools(tools)
    t.match(paint, {
      description: /Price: \$0\.01 per call\./,
      annotations: { title: 'Paint', readOnlyHint: false, destructiveHint: false, idempotentHint: true },
      _meta: { 'agents-x402/paymentRequired': true, 'agents-x402/priceUSD': 0.01 },
      inputSchema: {
        additionalProperties: false,
        properties: { tags: { type: 'array', items: { type: 'string' } }, shape: { type: 'object' } },
      },
    })
    t.match(work?.['description'], /Price: /)
    t.match(work?.['outputSchema'], {
      type: 'object',
      required: undefined,
      properties: {
        endpoint: { type: 'string' },
        run: { type: 'integer', description: 'How often it was done', minimum: undefined },
        value: { type: 'string' },
      },
    })
    const described = (await listTools(tools)).filter((tool) => 'outputSchema' in tool)
    t.match(
      described,
      [
        { name: 'other_work' },
        { name: 'write_json', outputSchema: { properties: { items: { type: 'array' } } } },
      ],
      'what is declared as JSON',
    )
    t.equal(described.length, 2)
    t.notMatch(whoami?.['description'], /Costs/)
    t.notOk(whoami?.['_meta'])
    t.match(forget, {
      description: /sign-in-with-x/,
      annotations: { readOnlyHint: false, destructiveHint: true },
    })
    const { result } = await rpc(tools, 'tools/list', {})
    t.match(result, { ttlMs: 300_000, cacheScope: 'public', resultType: 'complete' })
  },
)

t.test('names the tools there are, and the one that was meant, to a call of another', async (t) => {
  const { error } = await rpc(tools, 'tools/call', { name: 'pant', arguments: {} })
  t.match(error, {
    code: -32602,
    message: 'there is no tool "pant" — did you mean "paint"?; there are: paint, ',
  })
})

t.test('sells the tools of all servers at one address, each as its own server does', async (t) => {
  const all = `${shop.url}/mcp`
  const own = [...(await listTools(game)), ...(await listTools(tools))]
  t.strictSame(await listTools(all), own)
  const [key, before] = [await shop.wallet(), await charges()]
  const { isError, meta } = await payFor(all, 'other_work', { n: 41 }, key)
  t.notOk(isError)
  t.match(meta, { 'x402/payment-response': { success: true } })
  t.equal(await charges(), before + 1)
  t.equal((await fetch(`${shop.url}/mcp/server-card`)).status, 200)
})

t.test('tells an unpaid call its price in every place a client may look, without running it', async (t) => {
  const before = shop.upstream.runs()
  for (const revision of REVISIONS) {
    const { isError, content, text, meta } = await callTool(tools, 'other_work', { n: 3 }, { revision })
    t.ok(isError)
    t.equal(text, JSON.stringify(content), 'byte for byte')
    t.match(content, {
      x402Version: 2,
      resource: { url: `${TOOLS_BASE}/mcp`, description: 'The same work under another name' },
      accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: '10000', payTo: shop.payTo }],
      extensions: { 'payment-identifier': {}, redelivery: { info: { token: /./ } } },
      code: 'payment_required',
      charged: 'no',
      detail:
        /^other_work costs \$0\.01 for this call; nothing was run or charged\. How to pay, .*: https:\/\/\S+$/,
    })
    t.ok(text.startsWith('{"detail":"other_work costs $0.01'), 'a person reads the price first')
    t.match(meta['x402/error'], { x402Version: 2, accepts: [{ amount: '10000' }] })
    t.notOk('resultType' in content)
  }
  t.equal(shop.upstream.runs(), before)
})

t.test('uses the extension with clients that declare it only', async (t) => {
  const { result } = await rpc(
    tools,
    'tools/call',
    { name: 'paint', arguments: {} },
    { extensions: { 'org.x402/payment': {} } },
  )
  t.match(result, {
    resultType: 'payment_required',
    paymentRequired: { x402Version: 2, accepts: [{ amount: '10000' }] },
  })
  t.notOk(result?.['isError'])
  t.match((await rpc(tools, 'tools/call', { name: 'paint', arguments: {} })).result, {
    resultType: 'complete',
    isError: true,
  })
})

t.test(
  'accepts a payment as an object or as the text of the header, and answers with a receipt',
  async (t) => {
    for (const form of ['object', 'text'] as const) {
      const key = await shop.wallet()
      const { payload } = await sign(await demandOf(tools, 'other_work', { n: 4 }), key)
      const meta = { 'x402/payment': form === 'object' ? payload : encode(payload) }
      const { isError, content, text, meta: told } = await callTool(tools, 'other_work', { n: 4 }, { meta })
      t.notOk(isError, JSON.stringify(content))
      t.match(content, { endpoint: 'tools.other_work', n: 4, payer: addressOf(key) })
      t.equal(text, JSON.stringify(content))
      t.match(told['x402/payment-response'], {
        success: true,
        network: 'eip155:8453',
        payer: addressOf(key),
        transaction: /^0x[0-9a-f]{64}$/,
      })
      t.match(told['ratecard/payment'], /^pay_/)
      t.equal(await shop.onchain.charges(addressOf(key)), 1)
    }
  },
)

t.test('answers one payment once, whether it comes by HTTP or by MCP first', async (t) => {
  const before = { charges: await charges(), runs: shop.upstream.runs() }
  const byHttp = await sign(await challengeOf(`${shop.url}/paid/work?n=7`), await shop.wallet())
  const paid = await send(`${shop.url}/paid/work?n=7`, byHttp.header)
  t.equal(paid.status, 200)
  const { isError, content } = await callTool(
    game,
    'work',
    { n: 7 },
    { meta: { 'x402/payment': byHttp.payload } },
  )
  t.notOk(isError)
  t.strictSame(content, await paid.json())
  const byMcp = await sign(await demandOf(game, 'work', { n: 8 }), await shop.wallet())
  const first = await callTool(game, 'work', { n: 8 }, { meta: { 'x402/payment': byMcp.payload } })
  t.match(first.content, { endpoint: '/paid/work', n: 8 })
  const second = await send(`${shop.url}/paid/work?n=8`, byMcp.header)
  t.strictSame(await second.json(), first.content)
  t.equal((await charges()) - before.charges, 2)
  t.equal(shop.upstream.runs() - before.runs, 2)
  const reused = await callTool(game, 'work', { n: 9 }, { meta: { 'x402/payment': byMcp.payload } })
  t.match(reused.content, { code: 'payment_reused', charged: 'yes' }, 'and no other')
  t.equal((await charges()) - before.charges, 2)
})

t.test('marks an answer that an earlier payment has bought', async (t) => {
  // Behind a proxy nobody sees whether an answer arrives, so it is given again for half a minute.
  const server = await shop.branch({ TRUST_PROXY: '1' })
  t.teardown(() => server.stop())
  const url = `${server.url}/mcp/tools`
  const key = await shop.wallet()
  const [first, second] = [
    await payFor(url, 'other_work', { n: 33 }, key),
    await payFor(url, 'other_work', { n: 33 }, key),
  ]
  t.equal(first.meta['ratecard/charged'], undefined)
  t.equal(second.meta['ratecard/charged'], 'earlier')
  t.equal(second.meta['ratecard/payment'], first.meta['ratecard/payment'])
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('answers twenty simultaneous copies with one run and one charge', async (t) => {
  const before = { charges: await charges(), runs: shop.upstream.runs() }
  const { payload } = await sign(await demandOf(tools, 'other_work', { n: 20 }), await shop.wallet())
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      callTool(tools, 'other_work', { n: 20 }, { meta: { 'x402/payment': payload } }),
    ),
  )
  t.strictSame(
    [...new Set(answers.map(({ isError, text }) => `${isError} ${text}`))],
    [`false ${answers[0]?.text}`],
  )
  t.equal(shop.upstream.runs() - before.runs, 1)
  t.equal((await charges()) - before.charges, 1)
})

t.test('charges two paid calls of one legacy batch once each, and once more when bought again', async (t) => {
  const key = await shop.wallet()
  const ids: string[] = []
  const stateOf = async (id: string): Promise<unknown> =>
    ((await (await fetch(`${shop.url}/payments/${id}`)).json()) as JsonObject)['state']
  const buyBoth = async (): Promise<string> => {
    const calls = await Promise.all(
      [11, 12].map(async (n) => {
        const args = { n }
        const { payload, authorization } = await sign(await demandOf(tools, 'other_work', args), key)
        const { from, nonce } = authorization
        ids.push(paymentId(['x402', 'exact', 'eip155:8453', shop.chain.asset, from, nonce].join(':')))
        const params = { name: 'other_work', arguments: args, _meta: { 'x402/payment': payload } }
        return { jsonrpc: '2.0', id: n, method: 'tools/call', params }
      }),
    )
    const response = await fetch(tools, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(calls),
    })
    return response.text()
  }
  for (const bought of [2, 4]) {
    const text = await buyBoth()
    t.equal(text.match(/"success":true/g)?.length, 2, text)
    t.equal(await shop.onchain.charges(addressOf(key)), bought)
    await until('all are known to have arrived', async () =>
      (await Promise.all(ids.map(stateOf))).every((state) => state === 'sent'),
    )
  }
})

t.test('refuses a payment of another amount, payee, network or time, with the reason', async (t) => {
  const before = { charges: await charges(), runs: shop.upstream.runs() }
  const faults: Record<string, Faults> = {
    invalid_exact_evm_payload_authorization_value_mismatch: { value: 999n },
    invalid_exact_evm_recipient_mismatch: { to: addressOf(randomKey()) },
    no_matching_requirements: { accepted: { network: 'eip155:1' } },
    invalid_exact_evm_payload_authorization_valid_before: {
      validBefore: BigInt(Math.floor(Date.now() / 1000)),
    },
    payment_wrong_resource: { resource: { url: 'https://tools.example.com/other' } },
  }
  for (const [code, fault] of Object.entries(faults)) {
    const { isError, content, text } = await payFor(tools, 'other_work', { n: 2 }, await shop.wallet(), fault)
    t.ok(isError, code)
    t.match(content, { x402Version: 2, error: code, code, charged: 'no', accepts: [{ amount: '10000' }] })
    t.equal(text, JSON.stringify(content))
  }
  const poor = await payFor(tools, 'other_work', { n: 2 }, await shop.wallet(0n))
  t.match(poor.content, { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
  const unread = await callTool(
    tools,
    'other_work',
    { n: 2 },
    { meta: { 'x402/payment': { x402Version: 2 } } },
  )
  t.match(unread.content, { code: 'invalid_payload', charged: 'no' })
  for (const garbage of ['!', 'e30', 7]) {
    const { content } = await callTool(tools, 'other_work', { n: 2 }, { meta: { 'x402/payment': garbage } })
    t.match(content, { code: 'invalid_payload', charged: 'no' })
    t.notMatch(content['detail'], /header/i, 'MCP has none')
  }
  t.equal((await charges()) - before.charges, 0)
  t.equal(shop.upstream.runs() - before.runs, 0)
})

t.test(
  'reports wrong arguments one by one before payment, and accepts the payment for right ones',
  async (t) => {
    const before = await charges()
    const key = await shop.wallet()
    const { payload } = await sign(await demandOf(tools, 'other_work', { n: 5 }), key)
    const meta = { 'x402/payment': payload }
    for (const [args, detail] of [
      [{ n: '5' }, { loc: ['arguments', 'n'], type: 'int_type' }],
      [{ n: 101 }, { loc: ['arguments', 'n'], type: 'less_than_equal', ctx: { le: 100 } }],
      [
        { n: 5, wallet: 'x' },
        { loc: ['arguments', 'wallet'], type: 'extra_forbidden' },
      ],
      [{ N: 5 }, { loc: ['arguments', 'N'], msg: /did you mean "n"/ }],
    ] as const) {
      const { isError, content } = await callTool(tools, 'other_work', args, { meta })
      t.ok(isError)
      t.match(content, { detail: [detail] })
      t.notOk((await callTool(tools, 'other_work', args)).content['accepts'], 'nor is a price named for them')
    }
    t.equal((await charges()) - before, 0)
    t.match((await callTool(tools, 'other_work', { n: 5 }, { meta })).content, {
      n: 5,
      payer: addressOf(key),
    })
    t.equal((await charges()) - before, 1)
    const many = await callTool(tools, 'paint', {
      tags: ['a', 'b', 'c', 'd'],
      shape: 'x',
      note: 'ab',
      country: 'Germany',
    })
    t.strictSame(
      (many.content['detail'] as JsonObject[]).map(({ loc }) => loc),
      [
        ['arguments', 'country'],
        ['arguments', 'tags'],
        ['arguments', 'shape'],
        ['arguments', 'note'],
      ],
    )
  },
)

t.test('gives the JSON of an API as it was written, large numbers included', async (t) => {
  const json = '{ "id": 12345678901234567890, "rate": 1.10 }'
  for (const [text, told] of [
    [json, json],
    [`[${json}]`, `{"items":[${json}]}`],
    ['1.10', '{"value":1.10}'],
    ['null', '{"value":null}'],
  ] as const) {
    const { result } = answered({ kind: 'text', type: 'application/json', text }, {})
    t.strictSame(result, { content: [{ type: 'text', text: told }], structuredContent: JSON.parse(told) })
  }
  const { result } = answered({ kind: 'text', type: 'text/plain', text: '5' }, {})
  t.strictSame(result, { content: [{ type: 'text', text: '5' }] })
})

t.test('gives every JSON answer as an object that its output schema allows', async (t) => {
  const key = await shop.wallet()
  const listed = await listTools(tools)
  const [work, json] = ['other_work', 'write_json'].map((name) =>
    listed.find((each) => each['name'] === name),
  )
  const { content } = await payFor(tools, 'other_work', { n: 41 }, key)
  t.ok(new Ajv2020({ strict: false }).validate(work?.['outputSchema'] as object, content))
  const list = await payFor(tools, 'write_json', { text: '[1, 2.50]' }, key)
  t.ok(new Ajv2020({ strict: false }).validate(json?.['outputSchema'] as object, list.content))
  t.strictSame(list.content, { items: [1, 2.5] })
  t.equal(list.text, '{"items":[1, 2.50]}')
  t.equal(await shop.onchain.charges(addressOf(key)), 2)
  for (const [times, bare] of [false, true].entries()) {
    const wrong = await payFor(tools, 'write_list', { bare }, key)
    t.match(wrong, { isError: true, content: { code: 'internal', charged: 'no' } })
    await until(
      'the log says why',
      () => shop.output().split('the handler returned no answer').length - 1 === times + 1,
    )
  }
  t.equal(await shop.onchain.charges(addressOf(key)), 2, 'neither is sold')
})

t.test('embeds a file of at most 1 MB, and links to a larger one, which costs nothing more', async (t) => {
  const key = await shop.wallet()
  const bytesOf = (size: number): Buffer =>
    Buffer.from(Uint8Array.from({ length: size }, (_, place) => place % 251))
  const small = await payFor(tools, 'scan', { size: 1_000_000 }, key)
  t.match(small.whole['content'], [{ type: 'resource', resource: { mimeType: 'application/pdf' } }])
  t.same(
    at(small.whole, 'content', 0, 'resource', 'blob'),
    bytesOf(1_000_000).toString('base64'),
    'byte for byte',
  )
  const large = await payFor(tools, 'scan', { size: 1_000_001 }, key)
  const [told, link] = items(large.whole['content'])
  t.match(link, { type: 'resource_link', name: 'answer', mimeType: 'application/pdf', size: 1_000_001 })
  const uri = at(link, 'uri')
  if (typeof uri !== 'string') throw new Error('the link has no address')
  t.match(uri, /^https:\/\/api\.example\.com\/payments\/pay_[\w-]{22}\/[\w-]{43}$/)
  t.match(at(told, 'text'), uri, 'clients that show texts only lead there, too')
  const address = uri.replace(shop.baseUrl, shop.url)
  for (const time of ['once', 'and once more']) {
    const fetched = await fetch(address)
    t.equal(fetched.headers.get('content-type'), 'application/pdf')
    t.equal(fetched.headers.get('etag'), '"1000001"')
    t.ok(bytesOf(1_000_001).equals(Buffer.from(await fetched.arrayBuffer())), time)
  }
  t.equal(await shop.onchain.charges(addressOf(key)), 2, 'one charge each')
  const guessed = await fetch(address.slice(0, -1) + (address.endsWith('A') ? 'B' : 'A'))
  t.equal(guessed.status, 404, 'for nobody who does not know the digest')
  const older = await sign(await demandOf(tools, 'scan', { size: 1_000_002 }), key)
  const { whole } = await callTool(
    tools,
    'scan',
    { size: 1_000_002 },
    {
      meta: { 'x402/payment': older.payload },
      revision: '2025-06-18',
      headers: { 'mcp-protocol-version': '2025-03-26' },
    },
  )
  t.match(whole['content'], [{ type: 'text', text: /\/payments\/pay_/ }])
  t.equal(items(whole['content']).length, 1, 'clients before 2025-06-18 know no links')
})

t.test('passes lists, objects and defaults to the handler as they are', async (t) => {
  const key = await shop.wallet()
  const given = {
    tags: ['a', 'b', 'a'],
    shape: { type: 'object', properties: { x: { type: 'string' } } },
    country: 'de',
    note: '',
  }
  t.strictSame((await payFor(tools, 'paint', given, key)).content['given'], {
    ...given,
    country: 'DE',
    tags: ['a', 'b'],
  })
  t.strictSame((await payFor(tools, 'paint', {}, key)).content['given'], {
    country: 'US',
    shape: {},
    note: '',
  })
})

t.test('leaves failed work uncharged, and keeps internal messages out of the answer', async (t) => {
  const before = await charges()
  shop.upstream.during(() => Promise.reject(new Error('no')))
  const failed = await payFor(tools, 'other_work', { n: 11 }, await shop.wallet())
  shop.upstream.during(async () => {})
  t.ok(failed.isError)
  t.match(failed.content, { code: 'internal', charged: 'no', hint: /./ })
  t.notMatch(failed.text, /viem|work\.js|http:\/\//)
  t.equal((await charges()) - before, 0)
})

t.test(
  'withholds the answer when settlement fails, and asks to repeat the same payment when its outcome is unknown',
  async (t) => {
    const key = await shop.wallet()
    shop.upstream.during(() => shop.onchain.drain(addressOf(key), shop.payTo, 100_000_000n))
    const unsettled = await payFor(tools, 'other_work', { n: 12 }, key)
    shop.upstream.during(async () => {})
    t.ok(unsettled.isError)
    t.match(unsettled.content, { charged: 'no', accepts: [{ amount: '10000' }] })
    t.notOk('value' in unsettled.content)
    t.match(unsettled.meta['x402/payment-response'], { success: false })
    t.equal(await shop.onchain.charges(addressOf(key)), 0)
    const other = await shop.wallet()
    const { payload } = await sign(await demandOf(tools, 'other_work', { n: 14 }), other)
    const meta = { 'x402/payment': payload }
    shop.node.set('broken_after_send')
    const unknown = await callTool(tools, 'other_work', { n: 14 }, { meta })
    shop.node.set('open')
    t.ok(unknown.isError)
    t.match(unknown.content, {
      code: 'payment_pending',
      charged: 'unknown',
      payment: /^pay_/,
      status_url: /\/payments\/pay_/,
    })
    t.notOk('accepts' in unknown.content)
    t.match(
      (await callTool(tools, 'other_work', { n: 14 }, { meta })).content,
      { n: 14 },
      'the same payment tells',
    )
    t.equal(await shop.onchain.charges(addressOf(other)), 1)
  },
)

t.test('says that a tool lacks a setting before it asks for money', async (t) => {
  const { isError, content } = await callTool(tools, 'unset', {})
  t.ok(isError)
  t.match(content, { code: 'not_configured', charged: 'no' })
  t.notOk('accepts' in content)
  t.match((await rpc(tools, 'tools/call', { name: 'nothing', arguments: {} })).error, { code: -32602 })
})

t.test('accepts a signed proof of an address for this server, fresh and once', async (t) => {
  t.match((await callTool(tools, 'whoami', {})).content, { signer: null })
  const asked = await callTool(tools, 'forget', {})
  t.ok(asked.isError)
  t.match(asked.content, { code: 'signature_required', charged: 'no' })
  const { info } = (asked.content['extensions'] as { 'sign-in-with-x': { info: Record<string, string> } })[
    'sign-in-with-x'
  ]
  t.match(info, {
    domain: 'tools.example.com',
    uri: `${TOOLS_BASE}/mcp`,
    version: '1',
    nonce: /^[0-9a-f]{32}$/,
  })
  const account = privateKeyToAccount(randomKey())
  const prove = async (changes: Record<string, string> = {}): Promise<JsonObject> => {
    const fields: Record<string, string> = { ...info, nonce: randomKey().slice(2, 34), ...changes }
    const message = createSiweMessage({
      domain: fields['domain'] ?? '',
      address: account.address,
      uri: fields['uri'] ?? '',
      version: '1',
      chainId: 8453,
      nonce: fields['nonce'] ?? '',
      issuedAt: new Date(fields['issuedAt'] ?? ''),
      expirationTime: new Date(fields['expirationTime'] ?? ''),
    })
    return {
      ...fields,
      address: account.address,
      chainId: 'eip155:8453',
      type: 'eip191',
      signature: await account.signMessage({ message }),
    }
  }
  const proof = await prove()
  const meta = { 'sign-in-with-x': proof }
  t.match((await callTool(tools, 'forget', {}, { meta })).content, { signer: account.address })
  t.match((await callTool(tools, 'forget', {}, { meta })).content, {
    code: 'signature_refused',
    detail: /used before/,
  })
  const header = { 'sign-in-with-x': encode(await prove()) }
  t.match(
    (await callTool(tools, 'whoami', {}, { headers: header })).content,
    { signer: account.address },
    'by the header too',
  )
  const copies = { 'sign-in-with-x': await prove() }
  const all = await Promise.all(
    Array.from({ length: 50 }, () => callTool(tools, 'forget', {}, { meta: copies })),
  )
  t.equal(all.filter(({ isError }) => !isError).length, 1, 'of fifty copies at once one passes')
  t.match((await callTool(tools, 'forget', {}, { meta: copies })).content, { detail: /used before/ })
  const old = new Date(Date.now() - 301_000).toISOString()
  for (const changes of [
    { domain: 'evil.example.com' },
    { uri: `${shop.baseUrl}/mcp/game` },
    { issuedAt: old },
    { issuedAt: new Date(Date.now() + 120_000).toISOString() },
  ]) {
    const { content } = await callTool(
      tools,
      'whoami',
      {},
      { meta: { 'sign-in-with-x': await prove(changes) } },
    )
    t.match(content, { code: 'signature_refused', charged: 'no' }, JSON.stringify(changes))
  }
  const stranger = { ...(await prove()), address: addressOf(randomKey()) }
  t.match((await callTool(tools, 'whoami', {}, { meta: { 'sign-in-with-x': stranger } })).content, {
    code: 'signature_refused',
  })
})

interface Raw {
  readonly host?: string
  readonly path?: string
  readonly origin?: string
  readonly body?: string
}

function post({
  host = 'localhost',
  path = '/mcp/tools',
  origin,
  body = LIST,
}: Raw): Promise<{ status: number; text: string }> {
  const { port } = new URL(shop.url)
  const headers = {
    host,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(origin === undefined ? {} : { origin }),
  }
  return new Promise((resolve, reject) => {
    const asked = request({ port, path, method: 'POST', headers }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })

t.test('refuses names that are not its own, and endless bodies', async (t) => {
  t.equal((await post({})).status, 200)
  t.equal((await post({ origin: 'https://any.example.com' })).status, 200)
  t.equal((await post({ host: 'evil.example.com', origin: 'http://evil.example.com' })).status, 403)
  t.equal(
    (
      await post({
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { x: 'y'.repeat(262_144) } }),
      })
    ).status,
    413,
  )
  t.equal((await post({ body: '{' })).status, 400)
  const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'['.repeat(200_000)}`
  for (const body of [deep, '['.repeat(250_000), '{"a":'.repeat(50_000)]) {
    const refused = await post({ body })
    t.equal(refused.status, 400)
    t.match(JSON.parse(refused.text), {
      error: { code: -32600, message: /nested more than 200 levels deep/ },
    })
  }
})

t.test('shows tools that no route offers in the status', async (t) => {
  const { routes, unavailable } = (await (await fetch(`${shop.url}/status.json`)).json()) as JsonObject
  const alone = (routes as JsonObject[]).filter(({ kind }) => kind === 'tool')
  t.match(alone, [
    { path: 'tools.paint', availability: 'available' },
    { path: 'tools.other_work', availability: 'available' },
    { path: 'tools.whoami', availability: 'available' },
    { path: 'tools.forget', availability: 'available' },
    { path: 'tools.scan', availability: 'available' },
    { path: 'tools.write_json', availability: 'available' },
    { path: 'tools.write_list', availability: 'available' },
    { path: 'tools.unset', availability: 'not_configured' },
  ])
  t.match(alone[1], { success_rate: Number, last_success: /^20/ }, 'with what became of its calls')
  t.strictSame(unavailable, [{ path: 'tools.unset', reason: 'not_configured' }])
})

t.test('lets pages of every site call, as they may call over HTTP', async (t) => {
  const origin = 'https://any.example.com'
  const asked = await fetch(tools, { method: 'OPTIONS', headers: { origin } })
  t.equal(asked.status, 204)
  t.match(asked.headers.get('access-control-allow-headers'), 'MCP-Protocol-Version')
  const headers = {
    origin,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const listed = await fetch(tools, { method: 'POST', headers, body: LIST })
  t.equal(listed.status, 200)
  for (const each of [asked, listed]) t.equal(each.headers.get('access-control-allow-origin'), '*')
})

t.test(
  'serves a server with a base of its own at /mcp of that host, and below the service too',
  async (t) => {
    t.match((await post({ host: 'tools.example.com', path: '/mcp' })).text, /"paint"/)
    t.match((await post({ host: 'api.example.com', path: '/mcp' })).text, /"paint".*"work"|"work".*"paint"/s)
    t.match((await post({ host: 'api.example.com', path: '/mcp/game' })).text, /"work"/)
    t.equal((await post({ path: '/mcp/nobody' })).status, 404)
  },
)

t.test('refuses a header that contradicts the body, and reads a _meta in the root', async (t) => {
  const { status, error } = await rpc(tools, 'tools/list', {}, { headers: { 'mcp-method': 'tools/call' } })
  t.equal(status, 400)
  t.match(error, { code: -32020 })
  const { payload } = await sign(await demandOf(tools, 'paint', {}), await shop.wallet())
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'paint', arguments: {} },
    _meta: { 'x402/payment': payload },
  }
  t.match((await post({ body: JSON.stringify(body) })).text, /"x402\/payment-response"/)
})

import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { onchainClient } from '../../../support/base-chain.ts'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import { callTool } from '../../../support/mcp.ts'
import { sign, stockFetch, type Challenge } from '../../../support/payment.ts'
import { readSandboxFile, startServer } from '../../../support/server.ts'

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const chain = onchainClient(evm)
const pay = stockFetch(evm.payerKey)

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
const ARTICLE = 'Why do some games sell for twenty years? The first answer is patience.'
const HOSTILE = encodeURIComponent('ignore \u200b<|im_start|>%00'.repeat(400))

/** Every utility that needs no network: what it sells, what the free twin shows, and what is refused. */
const ROUTES: readonly {
  readonly path: string
  readonly query: string
  readonly atomic: bigint
  readonly says: object
  readonly sample: string
  readonly shows: object
  readonly refused: string
  readonly parameter: string
}[] = [
  {
    path: 'util/platform-spec',
    query: 'platform=youtube&type=shorts',
    atomic: 2_000n,
    says: { type: 'short', spec: { duration_seconds: { max: 180 } } },
    sample: '',
    shows: { platform: 'tiktok', spec: { duration_seconds: { max: 600 } } },
    refused: 'platform=twitch&type=carousel',
    parameter: 'type',
  },
  {
    path: 'util/delivery-orderby',
    query: `arrive_by=${inDays(40)}`,
    atomic: 2_000n,
    says: { service: 'parcel_domestic', feasible: 'yes', estimate: true },
    sample: `arrive_by=${inDays(40)}`,
    shows: { service: 'flowers', feasible: 'yes' },
    refused: `arrive_by=${inDays(-3)}`,
    parameter: 'arrive_by',
  },
  {
    path: 'util/occasion',
    query: 'country=de&from_date=2026-12-21&days=3&personal=Mum:12-22',
    atomic: 3_000n,
    says: { country: 'DE', occasions: [{ name: 'Mum', date: '2026-12-22' }] },
    sample: 'country=JP',
    shows: { country: 'JP', days: 45 },
    refused: 'personal=Mum',
    parameter: 'personal',
  },
  {
    path: 'util/guard',
    query: `text=${HOSTILE}`,
    atomic: 4_000n,
    says: { verdict: 'block' },
    sample: 'text=hello',
    shows: { verdict: 'allow', pii: { detected: false } },
    refused: 'text=',
    parameter: 'text',
  },
  {
    path: 'util/repurpose',
    query: `text=${encodeURIComponent(ARTICLE)}&target_seconds=5`,
    atomic: 4_000n,
    says: { language: 'en', segments: [{ index: 0 }] },
    sample: `text=${encodeURIComponent(ARTICLE)}`,
    shows: { segments: [{ index: 0 }] },
    refused: 'text=short',
    parameter: 'text',
  },
  {
    path: 'services/quote',
    query: 'need=a%20birthday%20cake&budget=80.50',
    atomic: 10_000n,
    says: { category: { id: 'cake' }, budget: { amount: 80.5 }, fit: 'within' },
    sample: 'need=flowers',
    shows: { category: { id: 'flowers' }, fit: 'within' },
    refused: 'need=cake&budget=0',
    parameter: 'budget',
  },
]

for (const { path, query, atomic, says, sample, shows, refused, parameter } of ROUTES) {
  t.test(`sells ${path} once for one payment, and refuses bad input uncharged`, async (t) => {
    const [uses, received] = await Promise.all([chain.uses(), chain.received(evm.payTo)])
    const bought = await pay(`${server.url}/paid/${path}?${query}`)
    const body: unknown = await bought.json()
    t.equal(bought.status, 200, JSON.stringify(body).slice(0, 300))
    t.match(body, { endpoint: `/paid/${path}`, cached: false, ...says })
    const [used, paid] = await Promise.all([chain.uses(), chain.received(evm.payTo)])
    t.equal(used.length, uses.length + 1)
    t.strictSame(paid.slice(received.length), [atomic], 'the price, exactly')

    const free = await fetch(`${server.url}/sample/${path}?${sample}`)
    t.equal(free.status, 200)
    t.match(await free.json(), { preview: true, full: { path: `/paid/${path}` }, ...shows })

    const wrong = await pay(`${server.url}/paid/${path}?${refused}`)
    t.equal(wrong.status, 422)
    t.match(await wrong.json(), { detail: [{ loc: ['query', parameter] }] })
    t.equal((await chain.uses()).length, used.length, 'no payment was used')
  })
}

t.test('refuses a misspelt parameter in the 402, in the sample and before a payment is used', async (t) => {
  const url = `${server.url}/paid/util/platform-spec?platform=youtube&typ=shorts`
  const detail = [{ loc: ['query', 'typ'], msg: /did you mean "type"/ }]
  const unpaid = await fetch(url)
  t.equal(unpaid.status, 402)
  t.match(await unpaid.json(), { would_fail: { status: 422 } })
  const uses = await chain.uses()
  const wrong = await pay(url)
  t.equal(wrong.status, 422)
  t.match(await wrong.json(), { detail, charged: 'no' })
  t.equal((await chain.uses()).length, uses.length, 'no payment was used')
  const free = await fetch(`${server.url}/sample/util/occasion?contry=DE`)
  t.equal(free.status, 422)
  t.match(await free.json(), { detail: [{ msg: /did you mean "country"/ }] })
})

t.test('names other unknown parameters in the 402, in the sample and in the paid answer', async (t) => {
  const query = 'platform=youtube&campaign=x'
  const unpaid = await fetch(`${server.url}/paid/util/platform-spec?${query}`)
  t.match(await unpaid.json(), { ignored_parameters: [{ name: 'campaign' }] })
  const warnings = [{ code: 'parameter_ignored', message: /no parameter 'campaign'/ }]
  const bought = await pay(`${server.url}/paid/util/platform-spec?${query}`)
  t.match(await bought.json(), { platform: 'youtube', warnings })
  const exact = await fetch(`${server.url}/paid/util/platform-spec?platform=youtube`)
  t.notOk('ignored_parameters' in ((await exact.json()) as object))
  const free = await fetch(`${server.url}/sample/util/occasion?campaign=x`)
  t.match(await free.json(), { country: 'US', warnings })
})

interface Described {
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly schema: { readonly examples?: readonly (string | number)[] }
  }[]
  readonly responses: {
    readonly 200: { readonly content: { readonly 'application/json': { readonly schema: object } } }
  }
}

t.test('gives answers that match the schema of OpenAPI', async (t) => {
  const response = await fetch(`${server.url}/openapi.json`)
  const openapi = (await response.json()) as {
    readonly paths: Readonly<Record<string, { readonly get?: Described }>>
    readonly components: object
  }
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  let checked = 0
  for (const [template, { get }] of Object.entries(openapi.paths)) {
    if (get === undefined || !/^\/(?:paid|sample)\//.test(template)) continue
    const given = (get.parameters ?? []).flatMap(({ name, in: place, schema: { examples = [] } }) =>
      examples.slice(0, 1).map((example) => ({ name, place, value: String(example) })),
    )
    const path = template.replace(
      /\{(\w+)\}/g,
      (_, name: string) => given.find((each) => each.name === name)?.value ?? name,
    )
    const query = new URLSearchParams(
      given.flatMap(({ name, place, value }): [string, string][] =>
        place === 'query' ? [[name, value]] : [],
      ),
    )
    // One of the two.
    if (query.has('doi')) query.delete('q')
    const ask = template.startsWith('/paid/') ? pay : fetch
    const answer = await ask(`${server.url}${path}?${query.toString()}`)
    const body: unknown = await answer.json()
    t.equal(answer.status, 200, `${path}: ${JSON.stringify(body).slice(0, 300)}`)
    const { schema } = get.responses[200].content['application/json']
    const validate = ajv.compile({ ...schema, components: openapi.components })
    t.ok(validate(body), `${path}: ${ajv.errorsText(validate.errors)}`)
    if (!template.startsWith('/sample/')) {
      // A schema that says nothing would accept every answer.
      const names = JSON.stringify([schema, openapi.components])
      const nameless = Object.keys(isJsonObject(body) ? body : {}).filter(
        (name) => !names.includes(`"${name}":`),
      )
      t.strictSame(nameless, [], `the members of ${path} are named`)
    }
    checked += 1
  }
  t.ok(checked >= 46, 'paid routes and samples')
})

const TEXT = 'Portal 2 came out on 18 April 2011 and costs 9.75 euros. It is still sold. Few games are.'

/** The research tools: what each sells, with the stand-ins that answer. */
const TOOLS: readonly {
  readonly name: string
  readonly args: JsonObject
  readonly atomic: bigint
  readonly says: object
}[] = [
  {
    name: 'web_research',
    args: { query: 'Which games sold best in Japan last week?' },
    atomic: 20_000n,
    says: {
      mode: 'extractive',
      source: [{ name: 'Sandbox stand-in for a search engine' }, { name: 'Sandbox stand-in for the web' }],
      sources: [{ url: 'https://news.example.com/charts/japan' }, {}, { suspicious: true }],
      pages: { read: 3, unread: { address: 1 } },
    },
  },
  {
    name: 'summarize',
    args: { text: TEXT, focus: 'price in euros' },
    atomic: 10_000n,
    says: { mode: 'extractive', source: [{ name: 'computed' }], summary: /^Portal 2 .* 9\.75 euros\.$/ },
  },
  {
    name: 'extract_structured',
    args: { text: TEXT, schema: { type: 'object', properties: { price: { type: 'number' } } } },
    atomic: 10_000n,
    says: { data: { price: 9.75 }, source: [{ name: 'Sandbox stand-in for a language model' }] },
  },
]

for (const { name, args, atomic, says } of TOOLS) {
  t.test(`sells ${name} once without a network, and names the provider of the answer`, async (t) => {
    const url = `${server.url}/mcp/tools`
    const received = await chain.received(evm.payTo)
    const { content: demand } = await callTool(url, name, args)
    const { payload } = await sign(demand as unknown as Challenge, evm.payerKey)
    const { isError, content } = await callTool(url, name, args, { meta: { 'x402/payment': payload } })
    t.notOk(isError, JSON.stringify(content).slice(0, 300))
    t.match(content, says)
    t.strictSame((await chain.received(evm.payTo)).slice(received.length), [atomic])
  })
}

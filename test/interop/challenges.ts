import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  checkEndpointSchema,
  getWarningsForMppHeader,
  validatePaymentRequiredDetailed,
} from '@agentcash/discovery'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { parsePaymentRequired } from '@x402/core/schemas'
import { countTokens } from 'gpt-tokenizer'
import { Challenge } from 'mppx'
import t, { type Test } from 'tap'
import { PaymentRequirementsSchema } from 'x402/types'
import type { Json } from '../../src/engine/base/json.ts'
import { exampleAnswer } from '../../src/engine/documents/answer-example.ts'
import { listening } from '../support/http.ts'
import { randomKey, readHeader } from '../support/payment.ts'
import { shippedCatalog } from '../support/shipped-catalog.ts'
import { until } from '../support/until.ts'
import { at, items } from '../support/documents.ts'
import {
  atomic,
  BASE_URL,
  exampleCall,
  lastingHeaders,
  objectIn,
  openProductionService,
  paid,
  textAt,
  type ShippedService,
} from './support/shipped-service.ts'
import { runTool } from './support/tool.ts'

/** A fixed payee: random addresses differ in tokens. */
const service = await openProductionService(t, {
  env: { PAY_TO: '0xb5423486591FC2aE22205d599bB1448CA5972CFd' },
})
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
/** As a prober spells a path it knows from a document only. */
const bare = (path: string): string => path.replace('{', '%7B').replace('}', '%7D')

t.test('answers 402 at every bare address a prober calls', async (t) => {
  for (const { path, price } of paid) {
    const answer = await service.ask(bare(path))
    t.equal(answer.status, 402, path)
    const header = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '')
    const parsed = parsePaymentRequired(header)
    t.ok(parsed.success, `${path}: ${JSON.stringify(parsed.error)}`)
    t.equal(header.x402Version, 2)
    const networks = header.accepts.map(({ network }) => network)
    t.strictSame(networks, ['eip155:8453', 'eip155:137', 'eip155:42161', 'eip155:43114'])
    for (const offer of header.accepts) {
      t.equal(offer.amount, atomic(price), path)
      t.match(offer.asset, ADDRESS)
      t.match(offer.payTo, ADDRESS)
      t.ok(offer.maxTimeoutSeconds > 0)
    }
    const body = objectIn(await answer.text())
    t.equal(body['x402Version'], 1, path)
    const older = items(at(body, 'accepts')).map((offer) => PaymentRequirementsSchema.parse(offer))
    t.strictSame(
      older.map(({ network, maxAmountRequired }) => [network, maxAmountRequired]),
      [
        ['base', atomic(price)],
        ['avalanche', atomic(price)],
      ],
      `${path}: the networks that every package of version 1 knows`,
    )
  }
})

t.test('gives directories an address with its path values filled in', async (t) => {
  for (const value of ['%7Bappid%7D', 'abc', '0']) {
    const answer = await service.ask(`/paid/gamestore/app/${value}`)
    const body = objectIn(await answer.text())
    const header = readHeader(answer, 'payment-required')
    t.equal(answer.status, 402, value)
    t.strictSame(at(header, 'extensions', 'bazaar', 'info', 'input', 'pathParams'), { appid: '730' })
    t.equal(at(header, 'resource', 'url'), `${BASE_URL}/paid/gamestore/app/730`, value)
    t.equal(at(body, 'accepts', 0, 'resource'), `${BASE_URL}/paid/gamestore/app/730`, value)
    t.equal(at(body, 'would_fail', 'status'), 422)
  }
  const concrete = readHeader(await service.ask('/paid/gamestore/app/440'), 'payment-required')
  t.equal(at(concrete, 'resource', 'url'), `${BASE_URL}/paid/gamestore/app/440`)
})

t.test('writes challenges that MPP clients parse', async (t) => {
  const ids: string[] = []
  for (const { path, price } of paid) {
    const answer = await service.ask(bare(path))
    t.strictSame(getWarningsForMppHeader(answer.headers.get('www-authenticate')), [], path)
    const [challenge] = Challenge.fromResponseList(answer)
    t.match(
      challenge,
      {
        method: 'tempo',
        intent: 'charge',
        realm: new URL(BASE_URL).hostname,
        request: { amount: atomic(price) },
      },
      path,
    )
    t.ok(Date.parse(challenge?.expires ?? '') > Date.now(), path)
    ids.push(challenge?.id ?? '')
  }
  t.equal(new Set(ids).size, paid.length)
})

t.test('shows both protocols and readable schemas to x402scan and AgentCash', async (t) => {
  for (const { path } of paid) {
    const result = await checkEndpointSchema({ url: service.url + exampleCall(path), probe: true })
    const [advisory] = result.found ? result.advisories.filter(({ method }) => method === 'GET') : []
    const protocols = new Set(advisory?.paymentOptions?.map(({ protocol }) => protocol))
    t.strictSame(
      [...protocols].toSorted((one, other) => one.localeCompare(other)),
      ['mpp', 'x402'],
      path,
    )
    t.ok(advisory?.inputSchema, path)
    t.ok(advisory?.outputSchema, path)
    const { valid, issues } = validatePaymentRequiredDetailed(advisory?.paymentRequiredBody, {
      requireInputSchema: true,
      requireOutputSchema: true,
    })
    t.ok(valid, `${path} ${JSON.stringify(issues)}`)
    t.strictSame(
      issues.map(({ code }) => code),
      [],
      path,
    )
  }
})

t.test('gives mppx what it looks for on every route', async (t) => {
  const { code, out, err } = await runTool('mppx/dist/bin.js', ['validate', service.url])
  t.equal(code, 0, err)
  const said = (out + err).split('\n')
  t.strictSame(
    said.filter((line) => line.includes('✗')),
    [],
  )
  // It holds the realm against the address it calls, which here is not the one of the service.
  t.strictSame(
    said.filter((line) => line.includes('⚠') && !line.includes('Realm matches')),
    [],
  )
  t.equal(said.filter((line) => line.includes('x402 payment challenge')).length, paid.length)
})

t.test('answers HEAD first, and every method, as a prober expects', async (t) => {
  const size = (headers: Headers): number =>
    [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  for (const { path } of paid) {
    const head = await service.ask(bare(path), { method: 'HEAD' })
    const get = await service.ask(bare(path))
    t.equal(head.status, 402, path)
    t.equal(await head.text(), '', path)
    t.strictSame(Object.keys(lastingHeaders(head)), Object.keys(lastingHeaders(get)), path)
    t.ok(decodePaymentRequiredHeader(head.headers.get('payment-required') ?? '').accepts.length > 0)
    t.ok(size(get.headers) < 8192, `${path}: ${size(get.headers)} bytes of headers`)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const refused = await service.ask(bare(path), { method })
      t.equal(refused.status, 405, `${method} ${path}`)
      t.match(refused.headers.get('allow'), 'GET')
    }
  }
})

t.test('keeps challenges out of caches and readable for browsers', async (t) => {
  for (const { path } of paid) {
    const { headers } = await service.ask(bare(path), { headers: { Origin: 'https://elsewhere.example' } })
    t.match(headers.get('cache-control'), 'no-store', path)
    t.equal(headers.get('access-control-allow-origin'), '*', path)
    for (const name of ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'WWW-Authenticate'])
      t.match(headers.get('access-control-expose-headers'), name, path)
  }
})

t.test('answers a registry that tries every route at once, free of 429 and 5xx', async (t) => {
  const methods = ['GET', 'HEAD', 'POST', 'OPTIONS']
  const calls = Array.from({ length: 250 }, (_, index) => ({
    path: bare(paid[index % paid.length]?.path ?? '/'),
    method: methods[index % methods.length] ?? 'GET',
  }))
  const answers = await Promise.all(calls.map(({ path, method }) => service.ask(path, { method })))
  const bad = answers.filter(({ status }) => status === 429 || status >= 500)
  t.strictSame(bad, [])
  t.equal(answers.filter(({ status }) => status === 402).length, 126)
})

t.test('passes AgentCash free of warnings', async (t) => {
  const { out } = await runTool('@agentcash/discovery/bin/discovery.js', [
    new URL(service.url).host,
    '--json',
  ])
  const report: { resources: unknown[]; warnings: { code: string }[] } = JSON.parse(out)
  const document = await service.readJson('/openapi.json')
  t.equal(report.resources.length, Object.keys(at(document, 'paths') ?? {}).length)
  const codes = new Set(report.warnings.map(({ code }) => code))
  // It would like fewer than 40 operations; nothing is dropped for it.
  codes.delete('L2_ROUTE_COUNT_HIGH')
  t.strictSame([...codes], [])
})

/** Paths of members that say nothing. */
function emptyMembers(value: Json, path: string): string[] {
  if (value === null || value === '') return [path]
  if (typeof value !== 'object') return []
  const parts = Object.entries(value)
  return parts.length === 0 ? [path] : parts.flatMap(([key, part]) => emptyMembers(part, `${path}/${key}`))
}

t.test('shows in a 402 the whole example, one sentence and no empty member', async (t) => {
  const catalog = shippedCatalog()
  for (const { path } of paid) {
    const { example, ...body } = objectIn(await (await service.ask(exampleCall(path))).text())
    const route = catalog.routes.find((each) => each.path === path)
    const whole = route === undefined ? undefined : exampleAnswer(catalog, route)
    const isShort = JSON.stringify(whole).length <= 4_096
    t.strictSame(example, isShort ? whole : undefined, path)
    t.match(body['docs'], BASE_URL, path)
    t.match(body['detail'], /^[^.]+ costs \$0\.\d{2,6}: send the request again with [^.]+\.$/, path)
    t.strictSame(emptyMembers(body, ''), [], path)
  }
})

t.test('says first that a request would fail, whatever is paid', async (t) => {
  const answer = await service.ask('/paid/game/metadata')
  const body = objectIn(await answer.text())
  t.equal(Object.keys(body)[0], 'would_fail')
  t.equal(body['detail'], 'this request would fail: repair it as would_fail says before you pay')
})

/** Every 402 offers this, in at most 1,000 tokens besides the example and 4 KB of headers. */
async function isSmall(t: Test, shop: ShippedService, offered: readonly string[]): Promise<void> {
  for (const { path } of paid) {
    const answer = await shop.ask(exampleCall(path))
    const bytes = [...answer.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
    t.ok(bytes <= 4_096, `${path}: ${bytes} bytes of headers`)
    t.ok(answer.headers.has('www-authenticate'), `${path} offers MPP`)
    const { example: _, ...body } = objectIn(await answer.text())
    const offers = items(at(readHeader(answer, 'payment-required'), 'accepts'))
    t.strictSame(
      offers.map((offer) => `${textAt(at(offer, 'scheme'))} ${textAt(at(offer, 'network'))}`),
      offered,
      path,
    )
    const tokens = countTokens(JSON.stringify(body))
    t.ok(tokens <= 1_000, `${path}: ${tokens} tokens besides the example`)
  }
}

t.test('costs an agent at most 1,000 tokens and 4 KB of headers, with four networks and MPP', (t) =>
  isSmall(t, service, ['exact eip155:8453', 'exact eip155:137', 'exact eip155:42161', 'exact eip155:43114']),
)

t.test('costs as little with channels, and with Solana among the four networks', async (t) => {
  const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'
  const feePayer = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4'
  const kinds = [{ x402Version: 2, scheme: 'exact', network: solana, extra: { feePayer } }]
  const facilitator = await listening(
    createServer((_, response) => {
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ kinds }))
    }),
  )
  t.teardown(() => facilitator.close())
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(ROOT, 'src'), join(folder, 'src'))
  const catalog = join(folder, 'catalog.yaml')
  const networks = 'networks: [base, polygon, arbitrum, solana]\n    schemes: [batch-settlement, exact]'
  writeFileSync(
    catalog,
    readFileSync(join(ROOT, 'catalog.yaml'), 'utf8').replace(/networks: \[.*\]/, networks),
  )
  const wide = await openProductionService(t, {
    args: ['--catalog', catalog],
    env: {
      PAY_TO: `0xb5423486591FC2aE22205d599bB1448CA5972CFd,${feePayer}`,
      CHANNEL_AUTHORIZER_KEY: randomKey(),
      FACILITATOR_URL: facilitator.url,
    },
  })
  const offersSolana = async (): Promise<boolean> =>
    JSON.stringify(readHeader(await wide.ask('/paid/ping'), 'payment-required')).includes(solana)
  await until('the facilitator has said who pays the fees on Solana', offersSolana)
  await isSmall(t, wide, [
    'batch-settlement eip155:8453',
    'exact eip155:8453',
    'exact eip155:137',
    'exact eip155:42161',
    `exact ${solana}`,
  ])
})

t.test('costs an agent at most 2,000 tokens for the price of a tool', async (t) => {
  for (const [server, name, given] of [
    ['game', 'top_sellers', {}],
    ['game', 'app_intel', { appid: 730 }],
    ['memory', 'memory_write', { text: 'herring' }],
  ] as const) {
    const answer = await service.ask(`/mcp/${server}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: given },
      }),
    })
    const text = await answer.text()
    const result = at(objectIn(/^data: (\{.*)$/m.exec(text)?.[1] ?? text), 'result') ?? null
    t.equal(items(at(result, 'structuredContent', 'accepts')).length, 4, name)
    t.ok(at(result, '_meta', 'org.paymentauth/payment-required'), name)
    const tokens = countTokens(JSON.stringify(result))
    t.ok(tokens <= 2_000, `${name}: ${tokens} tokens`)
  }
})

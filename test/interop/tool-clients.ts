import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { at, items } from '../support/documents.ts'
import { chargedOn } from '../system/guards/support/chains.ts'
import { onchainClient as onForeignChain } from '../support/base-chain.ts'
import { addressOf, type Hex } from '../support/payment.ts'
import { objectIn, textAt } from './support/shipped-service.ts'
import { BUYER, readSandboxFile, startServer } from '../support/server.ts'
import { BUYERS, CLIENTS, openMppBuyer, signOffer, type LocalServer } from './support/tool-buyers.ts'
import { openToolShop } from './support/tool-shop.ts'

const shop = await openToolShop(t)
const { service, onchain } = shop
const game = shop.serverUrl('game')
const PRICE = 5000n
const INSPECTOR = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/inspector/clients/launcher/build/index.js'),
)
const TOOL = 'top_sellers'
const TOOLS = [
  'top_sellers',
  'deals',
  'app_intel',
  'streaming_hype',
  'game_metadata',
  'market_snapshot',
  'app_dossier',
]

/** Nobody shall get the answer that another has bought: each asks for a country of its own. */
const COUNTRIES = ['US', 'DE', 'JP', 'FR', 'BR', 'GB', 'CA', 'PL', 'SE', 'IT']
function country(): JsonObject {
  return { country: COUNTRIES.shift() ?? 'US' }
}

function whyOf(result: JsonObject): string {
  return textAt(at(result, 'content', 0, 'text')).slice(0, 300)
}

/** An answer that was paid for once: what it holds, the receipt, and what the chain has seen. */
async function isPaid(t: Test, result: JsonObject, key: Hex): Promise<void> {
  t.not(result['isError'], true, whyOf(result))
  t.match(at(result, 'structuredContent', 'endpoint'), /\S/)
  t.strictSame(objectIn(textAt(at(result, 'content', 0, 'text'))), result['structuredContent'])
  const receipt = at(result, '_meta', 'x402/payment-response')
  t.match(receipt, { success: true, network: 'eip155:84532', transaction: /^0x[0-9a-f]{64}$/ })
  const payer = addressOf(key)
  t.equal(textAt(at(receipt, 'payer')).toLowerCase(), payer.toLowerCase())
  const uses = (await onchain.uses()).filter((use) => use.payer.toLowerCase() === payer.toLowerCase())
  t.strictSame(
    uses.map(({ transaction }) => transaction),
    [at(receipt, 'transaction')],
    'charged once',
  )
}

for (const [name, open] of Object.entries(BUYERS)) {
  t.test(`answers and charges a buyer who pays by ${name} once`, async (t) => {
    const key = await shop.wallet()
    const buyer = await open(game, key)
    t.teardown(() => buyer.close())
    t.strictSame(await buyer.list(), TOOLS)
    await isPaid(t, await buyer.buy(TOOL, country()), key)
  })
}

t.test('answers and charges a buyer who pays by the client of mppx once', async (t) => {
  const { rpcUrl, payerKey } = shop.tempo
  const before = await shop.received()
  const buyer = await openMppBuyer(game, rpcUrl, payerKey)
  t.teardown(() => buyer.close())
  const result = await buyer.buy(TOOL, country())
  t.not(result['isError'], true, whyOf(result))
  t.match(at(result, 'structuredContent', 'endpoint'), /\S/)
  const receipt = at(result, '_meta', 'org.paymentauth/receipt')
  t.match(receipt, { status: 'success', method: 'tempo', challengeId: /\S/ })
  t.strictSame((await shop.received()).slice(before.length), [PRICE], 'charged once')
})

/** `ratecard-buyer mcp` for the games, as a desktop client starts it. */
function proxyOf(t: Test, key: Hex, max: string, flags: readonly string[] = []): LocalServer {
  const cwd = t.testdir()
  const limits = ['--max-per-call', '0.01', '--max', max, '--data-dir', cwd]
  return {
    command: process.execPath,
    args: [BUYER, 'mcp', game.href, ...limits, ...flags],
    env: { PATH: process.env['PATH'] ?? '', PAYER_PRIVATE_KEY: key },
    cwd,
  }
}

/** Countries whose market no other call has bought. */
const MARKETS = ['NL', 'AT', 'CH', 'NO', 'DK', 'FI']

for (const [name, open] of Object.entries(CLIENTS)) {
  t.test(`buys five calls by ratecard-buyer mcp from ${name}, and is refused the sixth`, async (t) => {
    const key = await shop.wallet()
    const client = await open(proxyOf(t, key, '0.025'), () => 'decline')
    t.teardown(() => client.close())
    t.strictSame(await client.list(), TOOLS)
    const transactions: Json[] = []
    for (const country of MARKETS.slice(0, 5)) {
      const result = await client.buy(TOOL, { country })
      t.not(result['isError'], true, whyOf(result))
      t.match(at(result, 'structuredContent', 'country'), country)
      const receipt = at(result, '_meta', 'ratecard/receipt')
      t.match(receipt, { amount: '0.005', network: 'eip155:84532', payer: addressOf(key), charged: 'yes' })
      transactions.push(at(receipt, 'transaction') ?? null)
    }
    const sixth = await client.buy(TOOL, { country: MARKETS[5] ?? '' })
    t.match(sixth, { isError: true })
    t.match(whyOf(sixth), /the budget of 0\.025 USD .* Nothing was paid/)
    const uses = await onchain.uses()
    const mine = uses.filter(({ payer }) => payer.toLowerCase() === addressOf(key).toLowerCase())
    t.strictSame(
      mine.map(({ transaction }) => transaction),
      transactions,
    )
  })

  t.test(`asks the person at ${name} before ratecard-buyer mcp pays more than the threshold`, async (t) => {
    const key = await shop.wallet()
    const questions: string[] = []
    const answers: ('accept' | 'decline')[] = ['decline', 'accept']
    const server = proxyOf(t, key, '1', ['--ask-above', '0.004'])
    const client = await open(server, (question) => {
      questions.push(question)
      return answers.shift() ?? 'decline'
    })
    t.teardown(() => client.close())
    const declined = await client.buy(TOOL, { country: 'SE' })
    t.match(declined, { isError: true })
    t.match(whyOf(declined), /declined\. Nothing was paid/)
    t.equal(await onchain.charges(addressOf(key)), 0)
    const accepted = await client.buy(TOOL, { country: 'SE' })
    t.not(accepted['isError'], true, whyOf(accepted))
    t.match(at(accepted, '_meta', 'ratecard/receipt'), { amount: '0.005', charged: 'yes' })
    t.equal(await onchain.charges(addressOf(key)), 1)
    t.match(questions, [/^Pay 0\.005 USD/, /^Pay 0\.005 USD/])
  })
}

t.test('lists and buys by ratecard-buyer mcp from the command line of the inspector', async (t) => {
  const key = await shop.wallet()
  const { command, args, env, cwd } = proxyOf(t, key, '0.005')
  const inspect = async (method: string, ...options: string[]): Promise<JsonObject> => {
    const own = ['--cli', '-e', `PAYER_PRIVATE_KEY=${key}`, '--method', method, ...options]
    const argv = [INSPECTOR, ...own, '--', command, ...args]
    const child = spawn(process.execPath, argv, { cwd, env: { ...env, HOME: cwd }, stdio: 'pipe' })
    let printed = ''
    child.stdout.on('data', (text: Buffer) => (printed += text))
    await once(child, 'close')
    return objectIn(printed)
  }
  const buy = (country: string): Promise<JsonObject> =>
    inspect('tools/call', '--tool-name', TOOL, '--tool-arg', `country=${country}`)
  const { tools } = await inspect('tools/list')
  t.strictSame(
    items(tools).map((tool) => at(tool, 'name')),
    TOOLS,
  )
  const bought = await buy('BE')
  t.match(at(bought, 'structuredContent'), { country: 'BE' })
  t.match(at(bought, '_meta', 'ratecard/receipt'), { amount: '0.005', payer: addressOf(key), charged: 'yes' })
  const refused = await buy('PT')
  t.match(refused, { isError: true })
  t.match(whyOf(refused), /the budget of 0\.005 USD .* Nothing was paid/)
  t.equal(await onchain.charges(addressOf(key)), 1)
})

t.test('gives official clients a small file within the result, and a link to a large one', async (t) => {
  const catalog = fileURLToPath(new URL('../fixtures/mcp/catalog.yaml', import.meta.url))
  const handlers = fileURLToPath(new URL('../fixtures/payments/handlers', import.meta.url))
  const server = await startServer({ args: ['--catalog', catalog, '--handlers', handlers, '--sandbox'] })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const chain = onForeignChain(evm)
  const before = await chain.charges(addressOf(evm.payerKey))
  const names = ['SDK 1.x', 'SDK 2.x, older revisions', 'SDK 2.x, the newest revision'] as const
  for (const name of names) {
    const buyer = await BUYERS[name]?.(new URL(`${server.url}/mcp/tools`), evm.payerKey)
    t.teardown(() => buyer?.close())
    const small = await buyer?.buy('scan', { size: 1_000 })
    const data = textAt(at(small, 'content', 0, 'resource', 'blob'))
    t.equal(Buffer.from(data, 'base64').length, 1_000, name)
    const large = await buyer?.buy('scan', { size: 2_000_000 })
    const link = items(at(large, 'content')).find((each) => at(each, 'type') === 'resource_link')
    t.match(link, { mimeType: 'application/pdf', size: 2_000_000 }, name)
    const file = await fetch(textAt(at(link, 'uri')))
    t.equal(file.status, 200)
    t.equal((await file.arrayBuffer()).byteLength, 2_000_000)
  }
  t.equal((await chain.charges(addressOf(evm.payerKey))) - before, 2 * names.length, 'one charge each')
})

t.test(
  'charges official clients exactly what follows from the body, list or message they send',
  async (t) => {
    const catalog = fileURLToPath(new URL('../fixtures/prices/catalog.yaml', import.meta.url))
    const handlers = fileURLToPath(new URL('../fixtures/prices/handlers', import.meta.url))
    const server = await startServer({ args: ['--catalog', catalog, '--handlers', handlers, '--sandbox'] })
    t.teardown(() => server.stop())
    const { evm, tempo } = readSandboxFile(server)
    const tools = new URL(`${server.url}/mcp/tools`)
    const messages = [{ text: 'Good day' }, { text: 'Goodbye' }]
    // Each buyer sends something of its own: an answer that was paid for is given again.
    const callsOf = (n: number): [string, JsonObject, bigint][] => [
      ['scan', { body: Buffer.alloc(9_000, n).toString('base64') }, 4_500n],
      ['check', { domains: [`${n}.example`, 'b.example', 'c.example'], depth: 'deep' }, 16_001n],
      ['chat', { body: { model: 'large', messages: [...messages, { text: String(n) }] } }, 11_000n],
    ]
    for (const [n, [name, open]] of Object.entries(BUYERS).entries()) {
      const buyer = await open(tools, evm.payerKey)
      t.teardown(() => buyer.close())
      await buyer.list()
      for (const [tool, args, price] of callsOf(n)) {
        const before = (await onForeignChain(evm).received(evm.payTo)).length
        const result = await buyer.buy(tool, args)
        t.not(result['isError'], true, `${name}: ${whyOf(result)}`)
        t.strictSame(
          (await onForeignChain(evm).received(evm.payTo)).slice(before),
          [price],
          `${name}, ${tool}`,
        )
      }
    }
    const buyer = await openMppBuyer(tools, tempo.rpcUrl, tempo.payerKey)
    t.teardown(() => buyer.close())
    const received = async (): Promise<string> =>
      (await chargedOn(tempo.rpcUrl, tempo.currency, addressOf(tempo.payerKey), tempo.recipient)).amount
    for (const [tool, args, price] of callsOf(99)) {
      const before = BigInt(await received())
      const result = await buyer.buy(tool, args)
      t.not(result['isError'], true, whyOf(result))
      t.equal(BigInt(await received()) - before, price, `mppx, ${tool}`)
    }
  },
)

t.test('leads each skill of the agent card to an existing tool', async (t) => {
  const card = await service.readJson('/.well-known/agent-card.json')
  const skills = items(card['skills'])
  t.equal(skills.length, 8)
  const listed = new Map<string, string[]>()
  for (const skill of skills.filter((each) => at(each, 'available') === true)) {
    const [, tool = '', url = ''] = /MCP tool (\S+) at (\S+)$/.exec(textAt(at(skill, 'description'))) ?? []
    const names = listed.get(url) ?? (await namesAt(new URL(url)))
    listed.set(url, names)
    t.ok(names.includes(tool), textAt(at(skill, 'id')))
  }
  t.ok(listed.size >= 2, 'games and memory need nobody else')
})

async function namesAt(url: URL): Promise<string[]> {
  const buyer = await openMppBuyer(url, shop.tempo.rpcUrl, shop.tempo.payerKey)
  try {
    return await buyer.list()
  } finally {
    await buyer.close()
  }
}

t.test('returns to a wallet exactly what it has stored', async (t) => {
  const open = BUYERS['Cloudflare’s client around SDK 1.x']
  const memory = shop.serverUrl('memory')
  const [mine, other] = [await shop.wallet(), await shop.wallet()]
  const [owner, stranger] = await Promise.all([open?.(memory, mine), open?.(memory, other)])
  t.teardown(() => Promise.all([owner?.close(), stranger?.close()]))
  const text = 'The lighthouse keeper takes payment in herring'
  let written = await owner?.buy('memory_write', { text })
  // The store may take longer to open than the first call waits: that costs nothing, as the chain tells below.
  for (let tries = 0; tries < 4 && at(written, 'structuredContent', 'code') === 'handler_timeout'; tries++)
    written = await owner?.buy('memory_write', { text })
  t.not(written?.['isError'], true, whyOf(written ?? {}))
  const found = await owner?.buy('memory_search', { query: 'herring' })
  t.match(JSON.stringify(at(found, 'structuredContent')), text)
  const strange = await stranger?.buy('memory_search', { query: 'herring' })
  t.not(strange?.['isError'], true, whyOf(strange ?? {}))
  t.notMatch(JSON.stringify(strange), text)
  t.equal(await onchain.charges(addressOf(mine)), 2)
  t.equal(await onchain.charges(addressOf(other)), 1)
})

t.test('the program of the documentation pays when it is copied', async (t) => {
  const key = await shop.wallet()
  const call = { name: TOOL, arguments: country() }
  const head = `const url = new URL(${JSON.stringify(String(game))})\nconst call = ${JSON.stringify(call)}\n`
  const blocks = (await service.read('/docs.md')).split('```js\n').map((each) => each.split('\n```')[0] ?? '')
  const program = blocks.find((each) => each.includes('client.callTool(call)')) ?? ''
  const child = spawn(process.execPath, ['--input-type=module', '--eval', head + program], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { PATH: process.env['PATH'] ?? '', PAYER_PRIVATE_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text))
  const [code] = await once(child, 'exit')
  t.equal(code, 0, output)
  t.match(output, /'x402\/payment-response': \{\s+success: true/)
  t.equal(await onchain.charges(addressOf(key)), 1)
})

const NEWEST = '2026-07-28'
const EXTENSION = 'org.x402/payment'

async function ask(
  message: JsonObject,
  headers: Readonly<Record<string, string>>,
): Promise<Json | undefined> {
  const response = await fetch(game, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  })
  const text = await response.text()
  return at(objectIn(/^data: (\{.*)$/m.exec(text)?.[1] ?? text), 'result')
}

/** One request of the newest revision, as the specification writes it. */
function post(method: string, params: JsonObject, extensions: JsonObject): Promise<Json | undefined> {
  const { _meta: meta, name } = params
  const headers = {
    'MCP-Protocol-Version': NEWEST,
    'Mcp-Method': method,
    ...(typeof name === 'string' ? { 'Mcp-Name': name } : {}),
  }
  const envelope = {
    ...(isJsonObject(meta) ? meta : {}),
    'io.modelcontextprotocol/protocolVersion': NEWEST,
    'io.modelcontextprotocol/clientInfo': { name: 'buyer', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { extensions },
  }
  return ask({ method, params: { ...params, _meta: envelope } }, headers)
}

t.test('asks a client with the payment extension for payment in its own format', async (t) => {
  const discovered = await post('server/discover', {}, {})
  t.ok(items(at(discovered, 'supportedVersions')).includes(NEWEST))
  t.ok(at(discovered, 'capabilities', 'extensions', EXTENSION))
  const key = await shop.wallet()
  const call = { name: TOOL, arguments: country() }
  const plain = await post('tools/call', call, {})
  t.match(plain, { isError: true, resultType: 'complete' })
  t.equal(at(plain, 'content', 0, 'text'), JSON.stringify(at(plain, 'structuredContent')))
  const unpaid = await post('tools/call', call, { [EXTENSION]: {} })
  t.match(unpaid, { resultType: 'payment_required' })
  t.equal(at(unpaid, 'isError'), undefined)
  const payment = await signOffer(key, at(unpaid, 'paymentRequired'))
  const paid = await post('tools/call', { ...call, _meta: { 'x402/payment': payment } }, { [EXTENSION]: {} })
  t.match(paid, { resultType: 'complete' })
  await isPaid(t, asResult(paid), key)
})

t.test('leads a client that reads the card of a server to that server', async (t) => {
  const { entries } = await service.readJson('/.well-known/ard.json')
  const cards = items(entries).filter((each) => at(each, 'type') === 'application/mcp-server-card+json')
  t.ok(cards.length > 0)
  for (const entry of cards) {
    const answer = await service.ask(new URL(textAt(at(entry, 'url'))).pathname)
    t.equal(answer.headers.get('content-type'), 'application/mcp-server-card+json')
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    const card = objectIn(await answer.text())
    t.equal(`${textAt(at(card, 'remotes', 0, 'url'))}/server-card`, at(entry, 'url'))
    t.match(textAt(at(entry, 'identifier')), new RegExp(`:${textAt(card['name']).split('/')[1]}$`))
  }
  const card = await service.readJson(`${game.pathname}/server-card`)
  const [newest, ...older] = items(at(card, 'remotes', 0, 'supportedProtocolVersions')).map(textAt)
  const discovered = await post('server/discover', {}, {})
  t.strictSame(at(discovered, 'supportedVersions'), [newest])
  const told = [at(discovered, '_meta', 'io.modelcontextprotocol/serverInfo')]
  for (const revision of older) {
    const client = { capabilities: {}, clientInfo: { name: 'buyer', version: '1.0.0' } }
    const answer = await ask({ method: 'initialize', params: { ...client, protocolVersion: revision } }, {})
    t.equal(at(answer, 'protocolVersion'), revision)
    told.push(at(answer, 'serverInfo'))
  }
  for (const info of told)
    for (const name of ['name', 'title', 'version', 'description', 'websiteUrl'])
      t.equal(at(info, name), card[name], name)
})

function asResult(value: Json | undefined): JsonObject {
  if (!isJsonObject(value)) throw new Error('no result')
  return value as JsonObject
}

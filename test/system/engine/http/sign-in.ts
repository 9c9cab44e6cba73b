import { createServer } from 'node:http'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { createSiweMessage } from 'viem/siwe'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { at } from '../../../support/documents.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { askJson, listening } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import { encode, randomKey, readHeader } from '../../../support/payment.ts'
import { runLine } from '../../../support/run-command.ts'
import { startServer } from '../../../support/server.ts'

const shop = writeShop(
  t,
  `  /mine: { price: free, handler: whoami, summary: Tells who has signed in, requires: signer, tool: data.mine }
  /mine/{id}: { price: free, handler: whoami, summary: Tells it again, requires: signer, parameters: { id: { type: integer, example: 1 } } }
  POST /mine: { price: free, handler: whoami, summary: Takes a note, requires: signer, body: { properties: { note: { type: string, example: hi } } } }
  /anybody: { price: free, handler: whoami, summary: Asks nobody }
`,
  `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
mcp_servers: { data: { title: Data } }
documents: { openapi: /openapi.json, llms: /llms.txt, health: /health }
`,
)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
})
t.teardown(() => server.stop())
const MINE = `${server.url}/mine`
const HOST = new URL(server.url).host
const key = randomKey()
const account = privateKeyToAccount(key)

type Fields = Readonly<Record<string, string>>

function headerOf(headers: Headers): Json {
  return JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString())
}

/** The message that a 402 asks for. */
async function demanded(url: string): Promise<Fields> {
  const response = await fetch(url)
  const info = at(readHeader(response, 'payment-required'), 'extensions', 'sign-in-with-x', 'info')
  return info as Fields
}

/** A proof as wallets make it: the fields of the message, and its signature. */
async function prove(demand: Fields, changes: Fields = {}): Promise<Fields> {
  const fields = { ...demand, ...changes }
  const { domain = '', uri = '', nonce = '', issuedAt = '', expirationTime = '' } = fields
  const message = createSiweMessage({
    domain,
    address: account.address,
    uri,
    version: '1',
    chainId: 8453,
    nonce,
    issuedAt: new Date(issuedAt),
    expirationTime: new Date(expirationTime),
  })
  const signature = await account.signMessage({ message })
  return { ...fields, address: account.address, chainId: 'eip155:8453', type: 'eip191', signature }
}

async function readObject(response: Response): Promise<JsonObject> {
  const value: unknown = await response.json()
  if (!isJsonObject(value)) throw new Error('the answer is no object')
  return value
}

interface Sent {
  readonly method?: string
  readonly headers?: Fields
  readonly body?: string
}

async function ask(url: string, proof?: Fields | string, init: Sent = {}) {
  const header = typeof proof === 'string' ? proof : proof === undefined ? undefined : encode(proof)
  const headers = { ...init.headers, ...(header === undefined ? {} : { 'SIGN-IN-WITH-X': header }) }
  const response = await fetch(url, { ...init, headers })
  return { status: response.status, headers: response.headers, json: await readObject(response) }
}

t.test('asks a caller of a free route that needs a signer to sign, as x402’s extension does', async (t) => {
  const { status, headers, json } = await ask(MINE)
  t.equal(status, 402)
  t.equal(headers.get('content-type'), 'application/problem+json')
  t.equal(headers.get('cache-control'), 'no-store')
  t.match(json, { status: 402, code: 'sign_in_required', charged: 'no', hint: /SIGN-IN-WITH-X/ })
  const required = headerOf(headers)
  t.match(required, {
    x402Version: 2,
    error: 'sign_in_required',
    resource: { url: MINE },
    accepts: [],
    extensions: {
      'sign-in-with-x': {
        info: { domain: HOST, uri: MINE, version: '1', nonce: /^[0-9a-f]{32}$/ },
        supportedChains: [{ chainId: /^eip155:/, type: 'eip191' }],
      },
    },
  })
  t.match(json, required, 'the body has what its header says')
  const page = await fetch(MINE, { headers: { Accept: 'text/html' } })
  t.equal(page.headers.get('content-type'), 'application/problem+json', 'there is nothing to pay on a page')
})

t.test('gives the handler the address that has signed, for this path', async (t) => {
  const { status, headers, json } = await ask(MINE, await prove(await demanded(MINE)))
  t.equal(status, 200)
  t.match(json, { signer: account.address })
  t.equal(headers.get('cache-control'), 'private, no-store')
  const other = `${server.url}/mine/7`
  t.match((await ask(other, await prove(await demanded(other)))).json, { signer: account.address })
  const post = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"note":"hi"}' }
  t.match((await ask(MINE, await prove(await demanded(MINE)), post)).json, { signer: account.address })
  t.match((await ask(`${server.url}/anybody`, await prove(await demanded(MINE)))).json, { signer: null })
})

t.test('accepts a proof once, also of copies at the same time', async (t) => {
  const proof = await prove(await demanded(MINE))
  t.equal((await ask(MINE, proof)).status, 200)
  const again = await ask(MINE, proof)
  t.equal(again.status, 402)
  t.match(again.json, { code: 'sign_in_refused', detail: /used before/, charged: 'no' })
  const copies = await prove(await demanded(MINE))
  const all = await Promise.all(Array.from({ length: 50 }, () => ask(MINE, copies)))
  t.equal(all.filter(({ status }) => status === 200).length, 1)
})

t.test('refuses a proof that is not for this host and path, not fresh, or not of its address', async (t) => {
  const demand = await demanded(MINE)
  const past = new Date(Date.now() - 301_000).toISOString()
  const future = new Date(Date.now() + 120_000).toISOString()
  const wrong: Readonly<Record<string, Fields | string>> = {
    'for another host': await prove(demand, { domain: 'evil.example.com' }),
    'for another path': await prove(demand, { uri: `${server.url}/mine/7` }),
    'of five minutes ago': await prove(demand, { issuedAt: past }),
    'of the future': await prove(demand, { issuedAt: future }),
    'that has expired': await prove(demand, { expirationTime: past }),
    'of somebody else': {
      ...(await prove(demand)),
      address: privateKeyToAccount(randomKey()).address,
    },
    'with another nonce than the signed one': { ...(await prove(demand)), nonce: '0'.repeat(32) },
    'that is none': 'nonsense',
    'that is empty': '',
  }
  for (const [name, proof] of Object.entries(wrong)) {
    const { status, json } = await ask(MINE, proof)
    t.equal(status, 402, name)
    t.match(json, { code: 'sign_in_refused', extensions: { 'sign-in-with-x': {} } }, name)
  }
  t.equal((await ask(MINE, await prove(demand))).status, 200, 'none of them has used up the nonce')
})

t.test('says what is wrong with a request before it uses up a proof', async (t) => {
  const url = `${server.url}/mine/7`
  const proof = await prove(await demanded(url))
  t.equal((await ask(`${server.url}/mine/x`, proof)).status, 422)
  t.equal((await ask(url, proof)).status, 200)
})

t.test('needs the signature in the tool of the route, too', async (t) => {
  const { content } = await callTool(`${server.url}/mcp/data`, 'mine', {})
  t.match(content, { status: 401, code: 'signature_required', charged: 'no' })
  const info = at(content, 'extensions', 'sign-in-with-x', 'info')
  const meta = { 'sign-in-with-x': await prove(info as Fields) }
  t.match((await callTool(`${server.url}/mcp/data`, 'mine', {}, { meta })).content, {
    signer: account.address,
  })
})

t.test('says in its documents that the route needs a signature', async (t) => {
  const openapi = await askJson(`${server.url}/openapi.json`)
  t.match(openapi, {
    components: { securitySchemes: { signIn: { type: 'apiKey', in: 'header', name: 'SIGN-IN-WITH-X' } } },
    paths: {
      '/mine': { get: { security: [{ signIn: [] }], responses: { 402: { description: /signature/ } } } },
      '/anybody': { get: { security: [] } },
    },
  })
  t.match(at(openapi, 'paths', '/mine', 'get', 'description'), /sign-in-with-x/)
  t.match(await (await fetch(`${server.url}/llms.txt`)).text(), /\/mine.*SIGN-IN-WITH-X/)
})

t.test('lets ratecard pay sign in, with the wallet of the buyer and without a payment', async (t) => {
  const variables = { PAYER_PRIVATE_KEY: key, DATA_DIR: shop.directory }
  const ran = await runLine(['pay', `${server.url}/mine/7?about=this`, '--json'], { variables })
  t.equal(ran.code, 0, ran.err)
  t.match(JSON.parse(ran.out), { status: 200, charged: 'no', body: { signer: account.address } })
  const told = await runLine(['pay', MINE], { variables })
  t.match(told, { code: 0, err: `signed in as ${account.address}` })
  const nobody = await runLine(['pay', MINE], { variables: { DATA_DIR: shop.directory } })
  t.match(nobody, { code: 4, err: /no wallet: set PAYER_PRIVATE_KEY/ })
})

t.test('signs in at no other address than the one that is called', async (t) => {
  const asked = await fetch(MINE)
  const elsewhere = await listening(
    createServer((_, response) => {
      response.writeHead(402, { 'PAYMENT-REQUIRED': asked.headers.get('payment-required') ?? '' }).end('{}')
    }),
  )
  t.teardown(() => elsewhere.close())
  const variables = { PAYER_PRIVATE_KEY: key, DATA_DIR: shop.directory }
  const ran = await runLine(['pay', `${elsewhere.url}/mine`], { variables })
  t.match(ran, { code: 4, err: /it asks to sign in at another service/ })
})

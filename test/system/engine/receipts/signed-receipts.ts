import { createHash, createPrivateKey, generateKeyPairSync, sign as signBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { at } from '../../../support/documents.ts'
import { askJson, listening } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import {
  addressOf,
  type Challenge,
  challengeOf,
  encode,
  randomKey,
  readHeader,
  send,
  sign,
  writtenInV1,
} from '../../../support/payment.ts'
import { runLine } from '../../../support/run-command.ts'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

const upstream = await listening(
  createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: one\n\ndata: two\n\n')
  }),
)
t.teardown(() => upstream.close())
const shop = writeShop(
  t,
  `  /greet: { price: 0.01, handler: greet, summary: Greets, parameters: { name: { type: string } }, tool: desk.greet }
  /draw: { price: 0.02, upstream: '${upstream.url}/draw', summary: Streams, response: { stream: true, media_type: text/event-stream } }
`,
  `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
mcp_servers: { desk: { title: Desk } }
documents: { openapi: /openapi.json, health: /health }
`,
)
const KEY = randomKey()
const SETTINGS = { RECEIPT_PRIVATE_KEY: KEY }
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
  env: SETTINGS,
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const folder = mkdtempSync(join(tmpdir(), 'ratecard-receipts-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const GREET = `${server.url}/greet?name=ann`

interface Signed {
  readonly x402: string
  readonly ratecard: string
}

function claimsOf(jws: string): JsonObject {
  const value: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
  if (!isJsonObject(value)) throw new Error('no claims')
  return value
}

function receiptsIn(settlement: JsonObject): Signed {
  const x402 = at(settlement, 'extensions', 'offer-receipt', 'info', 'receipt', 'signature')
  const ratecard = at(settlement, 'extensions', 'ratecard-receipt', 'info', 'receipt')
  if (typeof x402 !== 'string' || typeof ratecard !== 'string') throw new Error('no receipts')
  return { x402, ratecard }
}

let bought = 0
/** A call of a new buyer's own, so that no earlier answer is given again. */
async function buy(path = '/greet') {
  bought += 1
  const url = `${server.url}${path}?name=buyer${bought}`
  const { header } = await sign(await challengeOf(url), evm.payerKey)
  const response = await send(url, header)
  const body = await response.text()
  return { response, body, payment: response.headers.get('ratecard-payment') ?? '', header }
}

function digestOf(payment: string, body: string): string {
  return createHash('sha256').update(`${payment}\n${body}`).digest('base64url')
}

async function verify(text: string, ...flags: string[]) {
  return runLine(['verify', text, '--json', ...flags])
}

/** The receipt with other claims, under the same signature. */
function altered(jws: string, changes: JsonObject): string {
  const [head, , signature] = jws.split('.')
  const claims = Buffer.from(JSON.stringify({ ...claimsOf(jws), ...changes })).toString('base64url')
  return [head, claims, signature].join('.')
}

/** The receipt as somebody else would sign it. */
function forged(
  jws: string,
  changes: { readonly header?: JsonObject; readonly claims?: JsonObject },
): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  const [head = ''] = jws.split('.')
  const header: JsonObject = { ...JSON.parse(Buffer.from(head, 'base64url').toString()), ...changes.header }
  const text = [header, { ...claimsOf(jws), ...changes.claims }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${signBytes(null, Buffer.from(text), privateKey).toString('base64url')}`
}

t.test('gives a paid answer two receipts that verify, with what was paid for it', async (t) => {
  const [bill, answer] = [join(folder, 'bill.json'), join(folder, 'answer.json')]
  const paid = await runLine(['pay', GREET, '--json', '-o', answer], {
    variables: { DATA_DIR: server.dataDir },
  })
  t.equal(paid.code, 0, paid.err)
  writeFileSync(bill, paid.out)
  const { code, out } = await verify(bill, '--answer', answer)
  t.equal(code, 0, out)
  const { transaction, payment }: JsonObject = JSON.parse(paid.out)
  const payer = addressOf(evm.payerKey)
  t.match(JSON.parse(out), [
    {
      kind: 'verified',
      form: 'x402',
      claims: { version: 1, network: 'eip155:84532', payer, resourceUrl: `${server.url}/greet` },
    },
    {
      kind: 'verified',
      form: 'ratecard',
      claims: {
        payment,
        operation: 'greet',
        resource: `${server.url}/greet`,
        payer,
        payee: evm.payTo,
        network: 'eip155:84532',
        authorized: '10000',
        charged: '10000',
        transaction,
      },
    },
  ])
  const shown = await runLine(['verify', bill, '--answer', answer])
  t.match(shown.out, /^verified: Ratecard receipt, signed by did:web:localhost%3A\d+#/m)
  t.match(shown.out, /^ {2}charged +10000$/m)
})

t.test('refuses a receipt whose amount, count, payer, time or answer was changed', async (t) => {
  const { response, body } = await buy()
  const { x402, ratecard } = receiptsIn(readHeader(response, 'payment-response'))
  for (const changes of [
    { charged: '1' },
    { authorized: '1' },
    { usage: { tokens: 1 } },
    { payer: `0x${'1'.repeat(40)}` },
    { settled_at: '2020-01-01T00:00:00.000Z' },
    { answer: digestOf('x', body) },
  ])
    t.match(await verify(altered(ratecard, changes)), { code: 1, out: /its signature is wrong/ })
  t.match(await verify(altered(x402, { issuedAt: 1 })), { code: 1, out: /its signature is wrong/ })
  const file = join(folder, 'other.json')
  writeFileSync(file, body)
  t.match(await verify(ratecard, '--answer', file), { code: 0 })
  writeFileSync(file, `${body} `)
  t.match(await verify(ratecard, '--answer', file), { code: 1, out: /receipt of another answer/ })
  t.match(await verify(x402, '--answer', file), { code: 1, err: /no receipt here states the digest/ })
})

t.test('refuses a receipt of a key that its service does not publish', async (t) => {
  const { response } = await buy()
  const { ratecard } = receiptsIn(readHeader(response, 'payment-response'))
  t.match(await verify(forged(ratecard, {})), { code: 1, out: /its signature is wrong/ })
  const kid = `did:web:localhost%3A${new URL(server.url).port}#other`
  t.match(await verify(forged(ratecard, { header: { kid } })), { code: 1, out: /does not list its key/ })
  const claims = { resource: 'https://api.example.com/greet' }
  t.match(await verify(forged(ratecard, { claims })), { code: 1, out: /is not the service of https/ })
  const none = { header: { kid: 'did:key:z6Mk' } }
  t.match(await verify(forged(ratecard, none)), { code: 1, out: /not one of a did:web/ })
  t.match(await verify(forged(ratecard, { header: { alg: 'none' } })), { code: 1, out: /algorithm/ })
  t.match(await verify(join(folder, 'nothing')), { code: 64, err: /there is no receipt/ })
})

t.test('publishes the public key alone', async (t) => {
  const document = await askJson(`${server.url}/.well-known/did.json`)
  t.match(document, { id: /^did:web:localhost%3A\d+$/, verificationMethod: [{ type: 'JsonWebKey2020' }] })
  const der = Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    Buffer.from(KEY.slice(2), 'hex'),
  ])
  const { x, d } = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' })
  t.match(at(document, 'verificationMethod', 0, 'publicKeyJwk'), { kty: 'OKP', crv: 'Ed25519', x })
  t.notMatch(JSON.stringify(document), d ?? KEY)
  t.notMatch(server.output(), KEY.slice(2))
})

t.test(
  'gives the same receipts again to who knows the digest of the answer, and to nobody else',
  async (t) => {
    const { response, body, payment } = await buy()
    const signed = receiptsIn(readHeader(response, 'payment-response'))
    const place = `${server.url}/payments/${payment}/${digestOf(payment, body)}/receipts`
    t.strictSame(await askJson(place), { payment, receipts: signed })
    t.equal((await fetch(`${server.url}/payments/${payment}/${digestOf(payment, 'x')}/receipts`)).status, 404)
    const state = JSON.stringify(await askJson(`${server.url}/payments/${payment}`))
    t.notMatch(state, addressOf(evm.payerKey))
    t.notMatch(state, 'receipts')
    const stated = claimsOf(signed.ratecard)['answer']
    t.not(stated, digestOf(payment, body), 'a receipt that is shown to others does not open the answer')
  },
)

t.test('exports the same receipts', async (t) => {
  const { response, payment } = await buy()
  const { x402, ratecard } = receiptsIn(readHeader(response, 'payment-response'))
  const argv = ['payments', 'export', '--sandbox', '--json', '--data-dir', server.dataDir]
  const rows: JsonObject[] = JSON.parse((await runProgram(argv, SETTINGS)).stdout)
  t.match(
    rows.find((row) => row['payment'] === payment),
    { x402_receipt: x402, ratecard_receipt: ratecard },
  )
  const plain: JsonObject[] = JSON.parse((await runProgram(argv, {})).stdout)
  t.match(plain[0], { x402_receipt: '', ratecard_receipt: '' })
})

t.test('gives receipts with a tool, and to a client of version 1', async (t) => {
  const tools = `${server.url}/mcp/desk`
  const asked = await callTool(tools, 'greet', { name: 'tool' })
  const { payload } = await sign(asked.content as unknown as Challenge, evm.payerKey)
  const { meta, text } = await callTool(
    tools,
    'greet',
    { name: 'tool' },
    { meta: { 'x402/payment': payload } },
  )
  const settled = meta['x402/payment-response']
  if (!isJsonObject(settled)) throw new Error('no receipt')
  const file = join(folder, 'tool.json')
  writeFileSync(file, text)
  t.match(await verify(JSON.stringify(receiptsIn(settled)), '--answer', file), { code: 0 })

  const url = `${server.url}/greet?name=older`
  const payment = await sign(await challengeOf(url), evm.payerKey)
  const headers = { 'x-payment': encode(writtenInV1(payment, 'base-sepolia')) }
  const response = await fetch(url, { headers })
  t.equal(response.status, 200)
  t.match(await verify(response.headers.get('x-payment-response') ?? ''), { code: 0 })
})

t.test('signs for a stream once it has ended', async (t) => {
  const { response, body, payment } = await buy('/draw')
  t.equal(body, 'data: one\n\ndata: two\n\n')
  t.equal(readHeader(response, 'payment-response')['extensions'], undefined)
  const place = `${server.url}/payments/${payment}/${digestOf(payment, body)}/receipts`
  await until('the answer is recorded', async () => (await fetch(place)).status === 200)
  const file = join(folder, 'stream.txt')
  writeFileSync(file, body)
  t.match(await verify(JSON.stringify(await askJson(place)), '--answer', file), { code: 0 })
})

t.test('signs for a payment by MPP, whose receipt has its own form', async (t) => {
  const answer = join(folder, 'mpp.json')
  const url = `${server.url}/greet?name=mpp`
  const paid = await runLine(['pay', url, '--json', '-o', answer, '--protocol', 'mpp'], {
    variables: { DATA_DIR: server.dataDir },
  })
  t.equal(paid.code, 0, paid.err)
  const { payment }: { readonly payment: string } = JSON.parse(paid.out)
  const digest = digestOf(payment, readFileSync(answer, 'utf8'))
  const receipts = await askJson(`${server.url}/payments/${payment}/${digest}/receipts`)
  t.match(await verify(JSON.stringify(receipts), '--answer', answer), { code: 0 })
})

t.test('does not start with the key of an account that moves money', async (t) => {
  const key = randomKey()
  const { code, stderr } = await runProgram(
    ['serve', '--catalog', shop.catalog, '--handlers', shop.handlers, '--data-dir', folder],
    {
      PAY_TO: addressOf(randomKey()),
      SETTLER_PRIVATE_KEY: key,
      RPC_URL_8453: 'http://127.0.0.1:1',
      RECEIPT_PRIVATE_KEY: key.toUpperCase().replace('0X', '0x'),
    },
  )
  t.not(code, 0)
  t.match(stderr, /RECEIPT_PRIVATE_KEY is a key of SETTLER_PRIVATE_KEY/)
})

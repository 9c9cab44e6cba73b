import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Challenge } from 'mppx'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import {
  connect,
  TRANSPORTS,
  messageOf,
  payByMpp,
  payByX402,
  type Transport,
} from '../../guards/support/buyer.ts'
import { payableEnv, startChains } from '../../guards/support/chains.ts'
import { openHandlerController } from '../../guards/support/handler-controller.ts'
import { addressOf, challengeOf, encode, randomKey, sign, stockFetch } from '../../../support/payment.ts'
import { listening } from '../../../support/http.ts'
import { startServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'
import { BodyReader } from '../../../../src/engine/http/body-reader.ts'
import { mppChallengeOf, signTempo, stockPayer } from '../../../support/tempo.ts'

const GUARDS = fileURLToPath(new URL('../../guards/catalog.yaml', import.meta.url))
const LETTER = `
  POST /paid/letter:
    price: 0.01
    handler: letter
    summary: Sends a letter
    timeout: 10s
    body:
      properties:
        n: { type: integer, required: true, minimum: 1, maximum: 1000, example: 1 }
        name: { type: string, idempotency_key: true }
    example: { n: 1 }
    tool: tools.letter
`
const HANDLERS = fileURLToPath(new URL('../../guards/handlers', import.meta.url))

const chains = await startChains()
const controller = await openHandlerController(async () => undefined)
const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
const CATALOG = join(dataDir, 'catalog.yaml')
writeFileSync(CATALOG, readFileSync(GUARDS, 'utf8').replace('\n  /free:', `${LETTER}  /free:`))
const server = await startServer({
  args: ['--handlers', HANDLERS],
  dataDir,
  env: {
    CATALOG,
    ...payableEnv(
      chains,
      { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl },
      [await chains.signer()],
      randomKey(),
    ),
    GUARD_CONTROLLER: controller.urlFor('bodies'),
  },
})
t.teardown(async () => {
  await server.stop()
  await controller.close()
  await chains.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const PICTURE = `${server.url}/paid/picture`
const post = (bytes: Uint8Array): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'image/png' },
  body: Buffer.from(bytes),
})
const pictureOf = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, place) => place % 251)

t.test('lets an unmodified x402 client buy an answer of bytes with a body of bytes', async (t) => {
  const key = await chains.base.wallet()
  for (const [place, size] of [3, 70_000, 10_000_000].entries()) {
    const picture = pictureOf(size)
    const response = await stockFetch(key)(PICTURE, post(picture))
    t.equal(response.status, 200, `${size} bytes`)
    t.equal(response.headers.get('content-type'), 'image/png')
    t.same(Buffer.from(await response.arrayBuffer()), Buffer.from(picture.toReversed()))
    t.equal((await chains.base.charged(addressOf(key))).transfers, place + 1)
  }
})

t.test('refuses a body over the limit of 10 MB with its payment, and charges nothing', async (t) => {
  const key = await chains.base.wallet()
  const refused = await stockFetch(key)(PICTURE, post(pictureOf(10_000_001)))
  t.equal(refused.status, 413)
  t.match(await refused.json(), { code: 'body_too_large', charged: 'no' })
  t.equal((await chains.base.charged(addressOf(key))).transfers, 0)
})

t.test('lets an unmodified MPP client buy with a small and a large body', async (t) => {
  const key = await chains.tempo.wallet()
  const { fetch: pay } = stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(key))
  for (const [place, size] of [3, 2_000_000].entries()) {
    const picture = pictureOf(size)
    const response = await (pay as typeof fetch)(PICTURE, post(picture))
    t.equal(response.status, 200, `${size} bytes`)
    t.same(Buffer.from(await response.arrayBuffer()), Buffer.from(picture.toReversed()))
    t.equal((await chains.tempo.charged(addressOf(key))).transfers, place + 1)
  }
})

t.test('lets unmodified clients of both protocols buy a PUT, a DELETE and a PDF', async (t) => {
  const [x402, mpp] = [await chains.base.wallet(), await chains.tempo.wallet()]
  const { fetch: payByMpp } = stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(mpp))
  const buyers = [
    { name: 'x402', key: x402, chain: chains.base, pay: stockFetch(x402), n: 41 },
    { name: 'MPP', key: mpp, chain: chains.tempo, pay: payByMpp as typeof fetch, n: 42 },
  ]
  for (const { name, key, chain, pay, n } of buyers) {
    const put = await pay(`${server.url}/paid/note`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ n }),
    })
    t.match(await put.json(), { n, run: 1 }, `${name}: PUT`)
    const removed = await pay(`${server.url}/paid/note/${n}`, { method: 'DELETE' })
    t.match(await removed.json(), { n, run: 1 }, `${name}: DELETE`)
    const pdf = await pay(`${server.url}/paid/report/${n}.pdf`)
    t.equal(pdf.headers.get('content-type'), 'application/pdf')
    t.equal(pdf.headers.get('etag'), `"${n}"`)
    const text = `%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj <</Type/Catalog/Page ${n}>> endobj\n%%EOF\n`
    t.same(Buffer.from(await pdf.arrayBuffer()), Buffer.from(text, 'latin1'), `${name}: PDF`)
    t.equal((await chain.charged(addressOf(key))).transfers, 3, `${name}: three charges`)
    t.equal(controller.runsOf(addressOf(key)), 2)
    t.equal(controller.keysOf(addressOf(key)), 2, 'each call has the idempotency key of its payment')
  }
})

t.test(
  'charges payments under one idempotency key once, by HTTP and MCP and in both protocols',
  async (t) => {
    const key = await chains.base.wallet()
    await chains.tempo.chain.fund(addressOf(key))
    const connection = connect(server.url)
    t.teardown(() => connection.close())
    /** Asks, signs a payment of its own, and sends it. */
    const buy = async (protocol: 'x402' | 'mpp', transport: Transport, args: object): Promise<string> => {
      const operation = transport.name === 'http' ? 'POST letter' : 'letter'
      const offers = transport.offers(await connection.send(transport.request(operation, args)))
      const payment = await (protocol === 'x402'
        ? payByX402(offers, key)
        : payByMpp(chains.tempo.rpcUrl, offers, key))
      const answer = await connection.send(transport.request(operation, args, payment))
      return transport.name === 'http' ? answer.body : JSON.stringify(messageOf(answer))
    }
    const charges = async (): Promise<number> => {
      const [base, tempo] = await Promise.all([
        chains.base.charged(addressOf(key)),
        chains.tempo.charged(addressOf(key)),
      ])
      return base.transfers + tempo.transfers
    }
    let [charged, n] = [0, 50]
    for (const protocol of ['x402', 'mpp'] as const)
      for (const transport of TRANSPORTS) {
        n += 1
        const told = `${protocol}, ${transport.name}`
        t.match(await buy(protocol, transport, { n, name: told }), /"run":1\b/, told)
        for (const other of ['x402', 'mpp'] as const)
          for (const otherFace of TRANSPORTS)
            t.match(await buy(other, otherFace, { n, name: told }), /"run":1\b/, told)
        t.equal(await charges(), (charged += 1), `${told}: one key, one charge`)
        t.match(await buy(protocol, transport, { n: n + 100, name: told }), /"idempotency_conflict"/)
        t.match(await buy(protocol, transport, { n, name: `${told}, 2` }), /"run":2\b/, told)
        t.equal(await charges(), (charged += 1), `${told}: two keys, two charges`)
        t.match(await buy(protocol, transport, { n }), /"run":3\b/, told)
        t.equal(await charges(), (charged += 1), `${told}: without a key, one more`)
      }
  },
)

t.test('redelivers an answer of bytes byte for byte, with its headers', async (t) => {
  const key = await chains.base.wallet()
  const picture = pictureOf(1_500_000)
  const offered = await fetch(PICTURE, post(picture))
  const challenge = JSON.parse(
    Buffer.from(offered.headers.get('payment-required') ?? '', 'base64').toString(),
  )
  const { payload } = await sign(challenge, key)
  const paying = {
    ...post(picture),
    headers: { 'content-type': 'image/png', 'payment-signature': encode(payload) },
  }
  const [first, second] = [await fetch(PICTURE, paying), await fetch(PICTURE, paying)]
  t.strictSame([first.status, second.status], [200, 200])
  t.same(Buffer.from(await second.arrayBuffer()), Buffer.from(await first.arrayBuffer()))
  t.ok(first.headers.get('x-payment-seen'))
  t.equal(second.headers.get('x-payment-seen'), first.headers.get('x-payment-seen'))
  t.equal((await chains.base.charged(addressOf(key))).transfers, 1, 'one charge')
})

t.test('binds a challenge of MPP to a body that was read whole', async (t) => {
  const challengeFor = async (size: number): Promise<string> => {
    const response = await fetch(PICTURE, post(pictureOf(size)))
    await response.arrayBuffer()
    return response.headers.get('www-authenticate') ?? ''
  }
  t.match(await challengeFor(3), /, digest="sha-256=:[A-Za-z0-9+/]{43}=:"/)
  t.notMatch(await challengeFor(1_000_001), /digest=/)
  t.notMatch(
    String((await mppChallengeOf(`${server.url}/paid/item?n=1`)).digest),
    /sha/,
    'none without a body',
  )
})

t.test(
  'refuses an MPP payment for another body than its challenge was made for, and charges nothing',
  async (t) => {
    const key = await chains.tempo.wallet()
    const payFor = async (asked: Uint8Array, sent: Uint8Array): Promise<Response> => {
      const challenge = Challenge.fromResponse(await fetch(PICTURE, post(asked)))
      const authorization = await signTempo(chains.tempo.rpcUrl, key, challenge)
      return fetch(PICTURE, { ...post(sent), headers: { 'content-type': 'image/png', authorization } })
    }
    const other = await payFor(pictureOf(3), pictureOf(4))
    t.equal(other.status, 402)
    t.match(await other.json(), { code: 'invalid_challenge', charged: 'no' })
    t.equal((await chains.tempo.charged(addressOf(key))).transfers, 0)
    const same = await payFor(pictureOf(3), pictureOf(3))
    t.equal(same.status, 200)
    t.equal((await chains.tempo.charged(addressOf(key))).transfers, 1)
  },
)

t.test('binds an MPP payment to the bytes of a body, not to the arguments in it', async (t) => {
  const key = await chains.tempo.wallet()
  const letter = (body: string, headers = {}): Promise<Response> =>
    fetch(`${server.url}/paid/letter`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
  const challenge = Challenge.fromResponse(await letter('{"n":1}'))
  const authorization = await signTempo(chains.tempo.rpcUrl, key, challenge)
  const other = await letter('{ "n": 1 }', { authorization })
  t.equal(other.status, 402)
  t.match(await other.json(), { code: 'invalid_challenge', detail: /another body/, charged: 'no' })
  t.equal((await chains.tempo.charged(addressOf(key))).transfers, 0)
  t.equal((await letter('{"n":1}', { authorization })).status, 200)
  t.equal((await chains.tempo.charged(addressOf(key))).transfers, 1)
})

t.test('keeps room for what JSON takes once it is parsed, until its request is answered', async (t) => {
  const bodies = new BodyReader()
  const waiting: ServerResponse[] = []
  const reading = createServer((asked, answer) => {
    void bodies.read(asked, answer, 5_000_000, 'json').then((read) => {
      if (Buffer.isBuffer(read) && asked.url === '/wait') waiting.push(answer)
      else answer.end(Buffer.isBuffer(read) ? 'read' : read)
    })
  })
  const { url, close } = await listening(reading)
  t.teardown(close)
  const send = async (body: string, path = '/'): Promise<string> =>
    (await fetch(url + path, { method: 'POST', body })).text()
  const large = `[${'{},'.repeat(450_000)}0]`
  const first = send(large, '/wait')
  await until('it is read', () => waiting.length === 1)
  t.equal(await send(large), 'busy', 'two of them are more than there is room for')
  t.equal(await send('{"a":[1]}'), 'read', 'a small one is read')
  for (const response of waiting) response.end('read')
  t.equal(await first, 'read')
  await until('there is room', async () => (await send(large)) === 'read')
  for (const body of ['['.repeat(4_000_000), `{"a":[${'['.repeat(200)}`]) t.equal(await send(body), 'deep')
  t.equal(await send(`"${'[{,'.repeat(1_500_000)}"`), 'read', 'a text is one value')
  t.equal(await send(`[${'0,'.repeat(1_000_000)}0]`), 'many')
})

t.test('answers a body that is too large before it reads it', async (t) => {
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const asking = request(PICTURE, {
      method: 'POST',
      headers: { 'content-type': 'image/png', 'content-length': 10_000_001 },
    })
    asking.once('response', (response) => {
      response.resume()
      resolve(response.statusCode)
      asking.destroy()
    })
    asking.once('error', reject)
    asking.write('a few bytes')
  })
  t.equal(status, 402)
  t.equal((await fetch(`${server.url}/health`)).status, 200, 'the server is well')
})

t.test('refuses a bad payment before it reads a large body', async (t) => {
  const poor = randomKey()
  const challenge = await challengeOf(`${server.url}/paid/item?n=1`)
  const { payload } = await sign(challenge, poor)
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const asking = request(PICTURE, {
      method: 'POST',
      headers: {
        'content-type': 'image/png',
        'content-length': 5_000_000,
        'payment-signature': encode(payload),
      },
    })
    asking.once('response', (response) => {
      response.resume()
      resolve(response.statusCode)
      asking.destroy()
    })
    asking.once('error', reject)
    asking.write('a few bytes')
  })
  t.equal(status, 402, 'answered although the body never comes')
  t.equal((await chains.base.charged(addressOf(poor))).transfers, 0)
})

import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { payableEnv, startChains } from '../../guards/support/chains.ts'
import { openDirector } from '../../guards/support/director.ts'
import { addressOf, challengeOf, encode, randomKey, sign, stockFetch } from '../../support/payment.ts'
import { startServer } from '../../support/server.ts'
import { mppChallengeOf, stockPayer } from '../../support/tempo.ts'

t.setTimeout(120_000)

const CATALOG = fileURLToPath(new URL('../../guards/catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../../guards/handlers', import.meta.url))

const chains = await startChains()
const director = await openDirector(async () => undefined)
const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
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
    GUARD_DIRECTOR: director.urlFor('bodies'),
  },
})
t.teardown(async () => {
  await server.stop()
  await director.close()
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
  for (const [place, size] of [3, 70_000, 9_000_000].entries()) {
    const picture = pictureOf(size)
    const response = await stockFetch(key)(PICTURE, post(picture))
    t.equal(response.status, 200, `${size} bytes`)
    t.equal(response.headers.get('content-type'), 'image/png')
    t.same(Buffer.from(await response.arrayBuffer()), Buffer.from(picture.toReversed()))
    t.equal((await chains.base.charged(addressOf(key))).transfers, place + 1)
  }
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

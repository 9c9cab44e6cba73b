import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Json } from '../../../../src/engine/base/json.ts'
import { callTool } from '../../../support/mcp.ts'
import {
  addressOf,
  challengeOf,
  randomKey,
  readHeader,
  send,
  sign,
  type Challenge,
} from '../../../support/payment.ts'
import { readProblem } from '../../../support/http.ts'
import { openShop } from '../../../support/shop.ts'
import { mppChallengeOf, openCredential, signTempo, startTempo, TEMPO_CHAIN } from '../../../support/tempo.ts'
import { until } from '../../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/mpp.yaml', import.meta.url))
const MORE = `
  /paid/deep: { price: 0.005, handler: work, settle: upfront, summary: Is paid for first }
  POST /paid/picture:
    price: 0.005
    handler: paint
    summary: Takes a picture
    body: { media_type: image/png, max_size: 1 MB }
`
const folder = mkdtempSync(join(tmpdir(), 'ratecard-denied-'))
const catalog = join(folder, 'catalog.yaml')
const denied = join(folder, 'denied.txt')
writeFileSync(
  catalog,
  readFileSync(CATALOG, 'utf8')
    .replace('  currency: USD\n', '  currency: USD\n  payers: { deny: denied.txt }\n')
    .replace('\ndocuments:', `${MORE}documents:`),
)
const tempo = await startTempo()
const [key, tempoKey] = [randomKey(), await tempo.wallet()]
writeFileSync(denied, `# by order\n${addressOf(key).toLowerCase()} # a comment\r\n\n${addressOf(tempoKey)}\n`)
const recipient = addressOf(randomKey())
const shop = await openShop(async () => ({
  CATALOG: catalog,
  [`RPC_URL_${TEMPO_CHAIN}`]: tempo.rpcUrl,
  MPP_RECIPIENT: recipient,
  MPP_SECRET_KEY: randomKey(),
}))
t.teardown(async () => {
  await Promise.all([shop.close(), tempo.stop()])
  rmSync(folder, { recursive: true, force: true })
})
await shop.chain.mint(addressOf(key), 1_000_000n)

const REFUSED = { code: 'payer_denied', charged: 'no', retryable: false }
const work = `${shop.url}/paid/work`

t.test('refuses a denied payer before any work, and charges nothing', async (t) => {
  const runs = shop.upstream.runs()
  for (const path of ['/paid/work', '/paid/deep']) {
    const { header } = await sign(await challengeOf(shop.url + path), key)
    const answer = await send(shop.url + path, header)
    t.equal(answer.status, 403, path)
    t.match(await readProblem(answer), REFUSED, path)
  }
  const authorization = await signTempo(tempo.rpcUrl, tempoKey, await mppChallengeOf(work))
  const overMpp = await fetch(work, { headers: { authorization } })
  t.equal(overMpp.status, 403)
  t.match(await readProblem(overMpp), REFUSED)
  const picture = `${shop.url}/paid/picture`
  for (const size of [10, 500_000]) {
    const post = { method: 'POST', headers: { 'content-type': 'image/png' }, body: Buffer.alloc(size) }
    const unpaid = await fetch(picture, post)
    await unpaid.body?.cancel()
    const { header } = await sign(readHeader(unpaid, 'payment-required') as unknown as Challenge, key)
    const answer = await fetch(picture, {
      ...post,
      headers: { ...post.headers, 'payment-signature': header },
    })
    t.equal(answer.status, 403, `${size} bytes`)
    t.match(await readProblem(answer), REFUSED, `${size} bytes`)
  }
  t.equal(shop.upstream.runs(), runs)
  t.equal(await shop.onchain.charges(addressOf(key)), 0)
  t.strictSame(await tempo.received(recipient), [])
})

t.test('refuses a denied payer in calls of tools, over both protocols', async (t) => {
  const runs = shop.upstream.runs()
  const tools = `${shop.url}/mcp/tools`
  const { payload } = await sign(await challengeOf(work), key, { resource: null })
  const credential = openCredential(await signTempo(tempo.rpcUrl, tempoKey, await mppChallengeOf(work)))
  const payments: readonly [string, Json][] = [
    ['x402/payment', payload],
    ['org.paymentauth/credential', JSON.parse(JSON.stringify(credential)) as Json],
  ]
  for (const [name, payment] of payments) {
    const { isError, content } = await callTool(tools, 'work', { n: 1 }, { meta: { [name]: payment } })
    t.ok(isError)
    t.match(content, REFUSED)
  }
  t.equal(shop.upstream.runs(), runs)
  t.equal(await shop.onchain.charges(addressOf(key)), 0)
  t.strictSame(await tempo.received(recipient), [])
})

t.test('refuses a payment of another key in the name of a denied payer for its signature', async (t) => {
  const { header } = await sign(await challengeOf(work), randomKey(), { from: addressOf(key) })
  t.match(await readProblem(await send(work, header)), { code: 'invalid_exact_evm_signature' })
})

t.test(
  'answers what a payer has bought again after its address was denied, and sells nothing more',
  async (t) => {
    const buyer = await shop.wallet()
    const { header } = await sign(await challengeOf(work), buyer)
    const first = await send(work, header)
    t.equal(first.status, 200)
    const answer = await first.text()
    const unused = await sign(await challengeOf(work), buyer)
    const reloads = (): number => shop.output().split('→').length
    const before = reloads()
    appendFileSync(denied, `${addressOf(buyer).toUpperCase().replace('0X', '0x')}\n`)
    await until('the list is read again', () => reloads() > before)
    const again = await send(work, header)
    t.equal(again.status, 200)
    t.equal(await again.text(), answer)
    t.match(await readProblem(await send(work, unused.header)), REFUSED)
    t.equal(await shop.onchain.charges(addressOf(buyer)), 1)
    t.strictSame(await shop.onchain.received(shop.payTo), [5_000n])
  },
)

t.test('keeps the last list when the new one has an error, and names its line', async (t) => {
  const list = readFileSync(denied)
  const said = (): number => shop.output().split('still serving revision').length
  for (const [change, words] of [
    [() => appendFileSync(denied, '0x12\n'), /payer_invalid .*denied\.txt:6: "0x12" is not an address/],
    [() => rmSync(denied), /file_unreadable .*denied\.txt cannot be read/],
  ] as const) {
    const before = said()
    change()
    await until('the list is refused', () => said() > before)
    await shop.server.said(words)
    const { header } = await sign(await challengeOf(work), key)
    t.match(await readProblem(await send(work, header)), REFUSED)
  }
  writeFileSync(denied, list)
})

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Json } from '../../../../src/engine/base/json.ts'
import { callTool } from '../../../support/mcp.ts'
import { addressOf, challengeOf, randomKey, send, sign, type Hex } from '../../../support/payment.ts'
import { readProblem } from '../../../support/http.ts'
import { openShop } from '../../../support/shop.ts'
import { mppChallengeOf, signTempo, startTempo, TEMPO_CHAIN } from '../../../support/tempo.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/mpp.yaml', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'ratecard-limit-'))
const catalog = join(folder, 'catalog.yaml')
writeFileSync(
  catalog,
  readFileSync(CATALOG, 'utf8').replace(
    '  currency: USD\n',
    '  currency: USD\n  payers: { limits: { calls: 4, spend: 0.02, per: 1h } }\n',
  ),
)
const tempo = await startTempo()
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

const LIMITED = { status: 429, code: 'payer_limit_reached', charged: 'no', retryable: true }
const work = (n: number, url = shop.url): string => `${url}/paid/work?n=${n}`

async function pay(url: string, key: Hex): Promise<{ readonly answer: Response; readonly header: string }> {
  const { header } = await sign(await challengeOf(url), key)
  return { answer: await send(url, header), header }
}

t.test(
  'sells one payer as many calls as its limit says, from all processes and after a restart',
  async (t) => {
    const key = await shop.wallet()
    const second = await shop.branch()
    const bought: string[] = []
    for (const url of [work(1), work(2, second.url), work(3)]) {
      const { answer, header } = await pay(url, key)
      t.equal(answer.status, 200, url)
      await answer.text()
      bought.push(header)
    }
    const last = await pay(work(4, second.url), key)
    t.equal(last.answer.status, 200)
    await last.answer.text()
    await shop.restart()
    const runs = shop.upstream.runs()
    for (const url of [work(5), work(5, second.url)]) {
      const { answer } = await pay(url, key)
      const wait = Number(answer.headers.get('retry-after'))
      t.ok(wait > 3_000 && wait <= 3_600, `Retry-After: ${wait}`)
      t.match(await readProblem(answer), LIMITED)
    }
    const { payload } = await sign(await challengeOf(work(6)), key, { resource: null })
    const tool = await callTool(
      `${shop.url}/mcp/tools`,
      'work',
      { n: 6 },
      { meta: { 'x402/payment': payload as Json } },
    )
    t.ok(tool.isError)
    t.match(tool.content, { code: 'payer_limit_reached', charged: 'no' })
    t.equal(shop.upstream.runs(), runs, 'no work')
    t.equal(await shop.onchain.charges(addressOf(key)), 4)
    const again = await send(work(1), bought[0] ?? '')
    t.equal(again.status, 200, 'what was bought is answered again')
    const other = await pay(work(7), await shop.wallet())
    t.equal(other.answer.status, 200, 'another payer has its own limit')
    await other.answer.text()
  },
)

t.test('admits exactly what fits of many payments at once', async (t) => {
  const key = await shop.wallet()
  const url = `${shop.url}/paid/dear`
  const payments = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const place = `${url}?n=${n + 1}`
      return { place, ...(await sign(await challengeOf(place), key)) }
    }),
  )
  const answers = await Promise.all(payments.map(({ place, header }) => send(place, header)))
  t.strictSame(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 200, ...Array.from({ length: 10 }, () => 429)],
    'two for 0.01 USD each are within 0.02 USD',
  )
  await Promise.all(answers.map((answer) => answer.text()))
  t.equal(await shop.onchain.charges(addressOf(key)), 2)
})

t.test('does not count copies of one payment, nor calls that were not charged', async (t) => {
  const key = await shop.wallet()
  const { header } = await sign(await challengeOf(work(1)), key)
  const copies = await Promise.all(Array.from({ length: 10 }, () => send(work(1), header)))
  for (const copy of copies) await copy.text()
  t.ok(copies.every(({ status }) => status !== 429))
  shop.upstream.during(() => Promise.reject(new Error('fails')))
  for (const n of [2, 3, 4]) {
    const { answer } = await pay(work(n), key)
    t.equal(answer.status, 500)
    await answer.text()
  }
  shop.upstream.during(async () => undefined)
  for (const n of [5, 6, 7]) {
    const { answer } = await pay(work(n), key)
    t.equal(answer.status, 200, `${n}`)
    await answer.text()
  }
  const { answer } = await pay(work(8), key)
  t.match(await readProblem(answer), LIMITED)
  t.equal(await shop.onchain.charges(addressOf(key)), 4)
})

t.test('limits payers of the other protocol alike', async (t) => {
  const key = await tempo.wallet()
  const call = async (n: number): Promise<Response> => {
    const authorization = await signTempo(tempo.rpcUrl, key, await mppChallengeOf(work(n)))
    return fetch(work(n), { headers: { authorization } })
  }
  for (const n of [1, 2, 3, 4]) {
    const answer = await call(n)
    t.equal(answer.status, 200)
    await answer.text()
  }
  const runs = shop.upstream.runs()
  t.match(await readProblem(await call(5)), LIMITED)
  t.equal(shop.upstream.runs(), runs)
  t.equal((await tempo.received(recipient)).length, 4)
})

/** Clients of x402 version 1, beside those of version 2. The clients themselves are run by `npm run interop`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { at, items } from '../../../support/documents.ts'
import { openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import { readProblem } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import {
  addressOf,
  challengeOf,
  encode,
  readHeader,
  send,
  sign,
  stockFetch,
  writtenInV1,
  type SignedPayment,
} from '../../../support/payment.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const MCP = fileURLToPath(new URL('../../../fixtures/mcp/catalog.yaml', import.meta.url))
const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/catalog.yaml', import.meta.url))

const shop = await openShop()
t.teardown(() => shop.close())
const work = `${shop.url}/paid/work`

async function fresh(place: Shop = shop): Promise<SignedPayment> {
  return sign(await challengeOf(`${place.url}/paid/work`), await place.wallet())
}

function sendV1(url: string, payment: SignedPayment): Promise<Response> {
  return fetch(url, { headers: { 'x-payment': encode(writtenInV1(payment, 'base')) } })
}

t.test('offers both versions on one 402', async (t) => {
  const response = await fetch(`${work}?n=3`)
  t.equal(response.status, 402)
  const header = readHeader(response, 'payment-required')
  t.equal(header['x402Version'], 2)
  const body = await readProblem(response)
  t.match(body, { x402Version: 1, error: 'payment_required', code: 'payment_required' })
  t.match(body['accepts'], [
    {
      scheme: 'exact',
      network: 'base',
      maxAmountRequired: '10000',
      resource: `${shop.baseUrl}/paid/work`,
      description: 'Works where the test says how',
      mimeType: 'application/json',
      payTo: shop.payTo,
      maxTimeoutSeconds: 60,
      asset: at(header, 'accepts', 0, 'asset'),
      extra: at(header, 'accepts', 0, 'extra'),
    },
  ])
  t.equal(items(body['accepts']).length, 1, 'Base alone can be settled here')
})

t.test('answers fifty simultaneous copies in version 1 with one run and one charge', async (t) => {
  const payment = await fresh()
  const runs = shop.upstream.runs()
  let finish = (): void => undefined
  const sent = new Promise<void>((resolve) => (finish = resolve))
  shop.upstream.during(() => sent)
  const copies = Array.from({ length: 50 }, async () => {
    const response = await sendV1(`${work}?n=5`, payment)
    return {
      status: response.status,
      receipt: response.headers.get('x-payment-response'),
      newer: response.headers.get('payment-response'),
      body: await response.text(),
    }
  })
  // Without a token of redelivery, a copy is refused two seconds after the answer was delivered: the server has all before.
  for (let round = 0; round < 3; round += 1) await (await fetch(`${shop.url}/health`)).text()
  finish()
  const answers = await Promise.all(copies)
  shop.upstream.during(async () => {})
  const [first] = answers
  for (const { status, newer } of answers) {
    t.equal(status, 200)
    t.equal(newer, null)
  }
  t.equal(new Set(answers.map(({ receipt }) => receipt)).size, 1, 'one receipt')
  t.equal(new Set(answers.map(({ body }) => body)).size, 1, 'one body')
  t.equal(shop.upstream.runs() - runs, 1, 'the work was done once')
  t.equal(await shop.onchain.charges(payment.authorization.from), 1, 'it was charged once')
  const receipt: unknown = JSON.parse(Buffer.from(first?.receipt ?? '', 'base64').toString())
  const [use] = (await shop.onchain.uses()).filter(({ payer }) => payer === payment.authorization.from)
  t.strictSame(receipt, {
    success: true,
    transaction: use?.transaction,
    network: 'base',
    payer: payment.authorization.from,
  })
})

t.test('charges an authorization once that is sent in both versions at the same time', async (t) => {
  const payment = await fresh()
  const runs = shop.upstream.runs()
  shop.upstream.during(() => delay(100))
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0 ? sendV1(`${work}?n=6`, payment) : send(`${work}?n=6`, payment.header),
    ),
  )
  shop.upstream.during(async () => {})
  for (const [index, { status, headers }] of answers.entries()) {
    t.ok(status === 200 || status === 409, `${index}: ${status}`)
    const name = index % 2 === 0 ? 'x-payment-response' : 'payment-response'
    t.equal(headers.has(name), status === 200, 'the receipt has the form of the payment')
  }
  t.ok(answers.some(({ status }) => status === 200))
  const bodies = await Promise.all(
    answers.filter(({ status }) => status === 200).map((answer) => answer.text()),
  )
  t.equal(new Set(bodies).size, 1, 'one body')
  t.equal(shop.upstream.runs() - runs, 1, 'the work was done once')
  t.equal(await shop.onchain.charges(payment.authorization.from), 1, 'it was charged once')
})

t.test('gives an answer that was bought with a token to its token alone', async (t) => {
  const payment = await fresh()
  t.equal((await send(`${work}?n=7`, payment.header)).status, 200)
  const observed = await sendV1(`${work}?n=7`, payment)
  t.equal(observed.status, 409, 'version 1 can be rebuilt from the calldata')
  t.match(await readProblem(observed), { code: 'payment_reused', charged: 'yes' })
  t.equal((await send(`${work}?n=7`, payment.header)).status, 200)
  t.equal(await shop.onchain.charges(payment.authorization.from), 1)
})

t.test('gives an answer that was bought in version 1 until it is delivered', async (t) => {
  const payment = await fresh()
  t.equal((await sendV1(`${work}?n=8`, payment)).status, 200)
  await until('the answer is known to be delivered', async () => {
    const { status } = await sendV1(`${work}?n=8`, payment)
    if (status !== 200) t.equal(status, 409)
    return status !== 200
  })
  t.equal(await shop.onchain.charges(payment.authorization.from), 1)
})

t.test(
  'refuses what is not a payment for this offer, uncharged, and offers both versions again',
  async (t) => {
    const payment = await fresh()
    const older = writtenInV1(payment, 'base')
    const paid = async (value: unknown): Promise<Response> =>
      fetch(work, { headers: { 'x-payment': Buffer.from(JSON.stringify(value)).toString('base64') } })
    const { authorization } = older.payload
    for (const change of [{ value: '1' }, { to: `0x${'1'.repeat(40)}` }, { validBefore: '1' }]) {
      const response = await paid({
        ...older,
        payload: { ...older.payload, authorization: { ...authorization, ...change } },
      })
      t.equal(response.status, 402, JSON.stringify(change))
      t.ok(response.headers.has('payment-required'))
      t.match(await readProblem(response), { x402Version: 1, accepts: [{ network: 'base' }], charged: 'no' })
    }
    for (const change of [{ network: 'polygon' }, { network: 'solana' }, { scheme: 'upto' }])
      t.equal((await paid({ ...older, ...change })).status, 402, JSON.stringify(change))
    for (const value of [
      {},
      [],
      7,
      null,
      { ...older, x402Version: 2 },
      { ...older, payload: 'x' },
      payment.payload,
    ])
      t.equal((await paid(value)).status, 400, JSON.stringify(value)?.slice(0, 60))
    const both = { 'x-payment': encode(older), 'payment-signature': payment.header }
    const twice = await fetch(work, { headers: both })
    t.equal(twice.status, 400)
    t.match(await readProblem(twice), { code: 'multiple_payments', charged: 'no' })
    t.equal(await shop.onchain.charges(payment.authorization.from), 0)
  },
)

t.test('keeps the answer back and says so in version 1 when the money is gone after the work', async (t) => {
  const payment = await fresh()
  const { from } = payment.authorization
  shop.upstream.during(() =>
    shop.onchain.drain(from, '0x00000000000000000000000000000000000e15e0', 100_000_000n),
  )
  const response = await sendV1(`${work}?n=9`, payment)
  shop.upstream.during(async () => {})
  t.equal(response.status, 402)
  t.match(readHeader(response, 'x-payment-response'), {
    success: false,
    transaction: '',
    network: 'base',
    payer: from,
  })
  t.equal(response.headers.get('payment-response'), null)
})

t.test('lets scripts of other origins send and read the headers of version 1', async (t) => {
  const preflight = await fetch(work, { method: 'OPTIONS', headers: { Origin: 'https://buyer.example' } })
  t.match(preflight.headers.get('access-control-allow-headers'), /\bX-PAYMENT\b/)
  const paid = await sendV1(`${work}?n=10`, await fresh())
  t.equal(paid.status, 200)
  t.match(paid.headers.get('access-control-expose-headers'), /\bX-PAYMENT-RESPONSE\b/)
  t.match(paid.headers.get('vary'), /\bX-PAYMENT\b/)
})

t.test('sells a tool for a payment of version 1, once with HTTP', async (t) => {
  const tools = await openShop(async () => ({ CATALOG: MCP, TOOLS_URL: 'https://tools.example.com' }))
  t.teardown(() => tools.close())
  const payment = await fresh(tools)
  const meta = { 'x402/payment': writtenInV1(payment, 'base') }
  const sold = await callTool(`${tools.url}/mcp/game`, 'work', { n: 7 }, { meta })
  t.notOk(sold.isError, JSON.stringify(sold.content))
  const payer = payment.authorization.from
  t.match(sold.meta['x402/payment-response'], { success: true, network: 'base', payer })
  const again = await send(`${tools.url}/paid/work?n=7`, payment.header)
  t.ok(again.status === 200 || again.status === 409, String(again.status))
  t.equal(await tools.onchain.charges(payer), 1)
})

t.test('sells to version 2 alone where the catalog says so', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-v1-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'catalog.yaml')
  writeFileSync(
    file,
    readFileSync(CATALOG, 'utf8').replace('    timeout: 60s', '    timeout: 60s\n    v1: false'),
  )
  const newer = await openShop(async () => ({ CATALOG: file }))
  t.teardown(() => newer.close())
  const offered = await readProblem(await fetch(`${newer.url}/paid/work`))
  t.match(offered, { x402Version: 2, accepts: [{ network: 'eip155:8453', amount: '10000' }] })
  const payment = await fresh(newer)
  const refused = await sendV1(`${newer.url}/paid/work`, payment)
  t.equal(refused.status, 400)
  t.match(await readProblem(refused), { code: 'invalid_x402_version', charged: 'no' })
  t.equal((await send(`${newer.url}/paid/work`, payment.header)).status, 200)
})

for (const version of [1, 2] as const) {
  t.test(`sends both versions on in version ${version} to a facilitator that lists no other`, async (t) => {
    let facilitator: FacilitatorServer | undefined
    const served = await openShop(async (chain) => {
      facilitator = await openFacilitator(chain, 'remembers', 'token', version)
      const { url, token } = facilitator
      return { SETTLER_PRIVATE_KEY: '', FACILITATOR_URL: url, FACILITATOR_TOKEN: token, RPC_URL_8453: '' }
    })
    t.teardown(() => Promise.all([served.close(), facilitator?.close()]))
    await until('the facilitator was asked', () => facilitator?.surveys() === 1)
    const key = await served.wallet()
    const newer = await stockFetch(key)(`${served.url}/paid/work?n=1`)
    t.equal(newer.status, 200, await newer.clone().text())
    t.match(readHeader(newer, 'payment-response'), { success: true, network: 'eip155:8453' })
    const payment = await fresh(served)
    const older = await sendV1(`${served.url}/paid/work?n=2`, payment)
    t.equal(older.status, 200, await older.clone().text())
    t.match(readHeader(older, 'x-payment-response'), { success: true, network: 'base' })
    t.equal(await served.onchain.charges(addressOf(key)), 1)
    t.equal(await served.onchain.charges(payment.authorization.from), 1)
    const asked = [...(facilitator?.verifies() ?? []), ...(facilitator?.settles() ?? [])]
    t.strictSame([...new Set(asked.map(({ x402Version }) => x402Version))], [version])
    const network = version === 1 ? 'base' : 'eip155:8453'
    for (const { paymentRequirements } of asked) t.equal(paymentRequirements.network, network)
  })
}

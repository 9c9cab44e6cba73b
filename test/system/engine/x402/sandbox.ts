import t from 'tap'
import { onchainClient } from '../../../support/base-chain.ts'
import { addressOf, readHeader, stockFetch } from '../../../support/payment.ts'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const chain = onchainClient(evm)
const payer = addressOf(evm.payerKey)
const pay = stockFetch(evm.payerKey)

const CALLS: readonly { readonly path: string; readonly atomic: bigint; readonly says: object }[] = [
  { path: '/paid/ping?nonce=hello', atomic: 1_000n, says: { nonce: 'hello' } },
  { path: '/paid/util/workday?country=DE&date=2026-12-23&days=3', atomic: 2_000n, says: { country: 'DE' } },
  {
    path: `/paid/util/json?op=query&data=${encodeURIComponent('{"a":[1,2]}')}&schema=${encodeURIComponent('$.a[1]')}`,
    atomic: 2_000n,
    says: { op: 'query' },
  },
  {
    path: '/paid/util/email-verify?email=jane.doe%40example.com',
    atomic: 3_000n,
    says: { status: 'domain_accepts_mail', domain: { mx: [{ exchange: 'mail.example.com' }] } },
  },
  {
    path: '/paid/util/citation?q=lecun+deep+learning+2015',
    atomic: 4_000n,
    says: { doi: '10.1038/nature14539', confidence: 1 },
  },
  { path: '/paid/gamestore/top-sellers?country=US', atomic: 5_000n, says: { country: 'US' } },
]

t.test('lets the stock client pay every kind of route in a fresh sandbox', async (t) => {
  for (const { path, atomic, says } of CALLS) {
    await t.test(path, async (t) => {
      const [uses, received] = await Promise.all([chain.uses(), chain.received(evm.payTo)])
      const response = await pay(server.url + path)
      const body: unknown = await response.json()
      t.equal(response.status, 200, JSON.stringify(body))
      t.match(body, says)
      const receipt = readHeader(response, 'payment-response')
      t.match(receipt, { success: true, transaction: /^0x[0-9a-f]{64}$/, network: 'eip155:84532', payer })
      const fresh = (await chain.uses()).slice(uses.length)
      t.strictSame(
        fresh.map((use) => [use.payer, use.transaction]),
        [[payer, receipt['transaction']]],
        'one authorization was used, in the transaction of the receipt',
      )
      t.strictSame((await chain.received(evm.payTo)).slice(received.length), [atomic], 'the price, exactly')
    })
  }
})

t.test('ratecard pay shows a newcomer the whole exchange, and a script its result', async (t) => {
  const path = '/paid/ping?nonce=cli'
  const { code, stdout, stderr } = await runProgram(['pay', path, '--json'], { DATA_DIR: server.dataDir })
  t.equal(code, 0, stderr)
  const bill = JSON.parse(stdout) as { transaction: string }
  t.match(bill, {
    status: 200,
    charged: 'yes',
    protocol: 'x402',
    network: 'eip155:84532',
    amount: '0.001',
    body: { nonce: 'cli' },
  })
  const [last] = (await chain.uses()).slice(-1)
  t.equal(last?.transaction, bill.transaction)
})

t.test('reports an empty wallet to its owner, uncharged', async (t) => {
  const poor = stockFetch(`0x${'7'.repeat(64)}`)
  const response = await poor(`${server.url}/paid/ping`)
  t.equal(response.status, 402)
  t.match(await response.json(), { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
})

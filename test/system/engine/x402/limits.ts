import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readProblem } from '../../../support/http.ts'
import { startBase, onchainClient } from '../../../support/base-chain.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, challengeOf, randomKey, send, sign } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'
import { openChainControl } from '../../../support/settlement-context.ts'
import { openCountingUpstream } from '../../../support/upstream.ts'

const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../../fixtures/payments/${path}`, import.meta.url))

const [chain, upstream] = await Promise.all([startBase(), openCountingUpstream()])
const node = await openRpcProxy(chain.rpcUrl)
const chainControl = openChainControl(chain)
const onchain = onchainClient(chain)
const keys = [randomKey(), randomKey()]
for (const key of keys) await chain.setGas(addressOf(key), 10n ** 18n)

const catalog = join(t.testdir(), 'catalog.yaml')
function limit(limits: string): void {
  const text = readFileSync(fixture('catalog.yaml'), 'utf8')
  writeFileSync(catalog, text.replace('    timeout: 60s\n', `    timeout: 60s\n    limits: ${limits}\n`))
}

limit('{ base: { max_fee_gwei: 0.5 } }')
const server = await startServer({
  args: ['--catalog', catalog, '--handlers', fixture('handlers')],
  env: {
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    PAY_TO: addressOf(randomKey()),
    // The second is repeated: it is one account anyway.
    SETTLER_PRIVATE_KEY: [...keys, ...keys.slice(1)].join(','),
    RPC_URL_8453: node.url,
    UPSTREAM_URL: upstream.url,
  },
})
t.teardown(async () => {
  await server.stop()
  await Promise.all([node.close(), upstream.close(), chain.stop()])
})
const work = `${server.url}/paid/work`

const called = (name: string): number => node.calls().filter((method) => method === name).length

async function reload(limits: string): Promise<void> {
  limit(limits)
  const before = server.output().length
  server.process.kill('SIGHUP')
  // The watcher may serve the file of the reload before once more.
  while (!/revision (\S+) → (?!\1)/.test(server.output().slice(before))) await delay(10)
}

async function fresh() {
  const key = randomKey()
  await chain.mint(addressOf(key), 10_000n)
  return sign(await challengeOf(work), key)
}

t.test('holds the operator’s highest fee, uncharged, and accepts a higher one while it runs', async (t) => {
  const payment = await fresh()
  const runs = upstream.runs()
  const response = await send(work, payment.header)
  t.equal(response.status, 503)
  t.ok(response.headers.get('retry-after'))
  t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
  await server.said(/"outcome":"chain_unavailable".*"detail":"the network asks for higher fees now/)
  t.strictSame(await onchain.uses(), [])
  t.notOk(node.calls().includes('eth_sendRawTransaction'))
  t.equal(upstream.runs(), runs, 'no work was done for it')
  await reload('{ base: { max_fee_gwei: 20 } }')
  t.equal((await send(work, payment.header)).status, 200)
  t.equal((await onchain.uses()).length, 1)
})

t.test('waits for two blocks when the operator requires two', async (t) => {
  await reload('{ base: { max_fee_gwei: 20, confirmations: 2 } }')
  const payment = await fresh()
  const before = (await onchain.uses()).length
  let answered = false
  const waiting = send(work, payment.header).then((response) => {
    answered = true
    return response
  })
  while (!answered && (await onchain.uses()).length === before) await delay(10)
  const polls = called('eth_getTransactionReceipt')
  while (!answered && called('eth_getTransactionReceipt') < polls + 3) await delay(10)
  t.notOk(answered, 'charged, and looked at three times')
  await chainControl.mine()
  const response = await waiting
  t.equal(response.status, 200, await response.text())
})

t.test('settles with two keys of one operator side by side', async (t) => {
  await reload('{ base: { max_fee_gwei: 20 } }')
  const payments = []
  for (let count = 0; count < 12; count += 1) payments.push(await fresh())
  const before = (await onchain.uses()).length
  const answers = await Promise.all(payments.map(({ header }) => send(work, header)))
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
  const fresher = (await onchain.uses()).slice(before)
  t.equal(fresher.length, 12)
  const senders = await Promise.all(
    fresher.map(async ({ transaction }) => {
      const { from } = await chainControl.client.getTransaction({ hash: `0x${transaction.slice(2)}` })
      return from
    }),
  )
  t.strictSame([...new Set(senders)].toSorted(), keys.map((key) => addressOf(key).toLowerCase()).toSorted())
  t.notMatch(server.output(), /unexpected/)
})

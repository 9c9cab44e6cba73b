import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readProblem } from '../../../support/responses.ts'
import { startBase, witness } from '../../../support/base-chain.ts'
import { openNodeProxy } from '../../../support/node-proxy.ts'
import { addressOf, challengeOf, randomKey, send, sign } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'
import { openMischief } from '../../../support/settling.ts'
import { openWorkplace } from '../../../support/workplace.ts'

const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../../fixtures/payments/${path}`, import.meta.url))

const [chain, workplace] = await Promise.all([startBase(), openWorkplace()])
const node = await openNodeProxy(chain.rpcUrl)
const mischief = openMischief(chain)
const onlooker = witness(chain)
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
    // The second is repeated: it is one account all the same.
    SETTLER_PRIVATE_KEY: [...keys, ...keys.slice(1)].join(','),
    RPC_URL_8453: node.url,
    WORKPLACE: workplace.url,
  },
})
t.teardown(async () => {
  await server.stop()
  await Promise.all([node.close(), workplace.close(), chain.stop()])
})
const work = `${server.url}/paid/work`

const called = (name: string): number => node.calls().filter((method) => method === name).length

async function reload(limits: string): Promise<void> {
  limit(limits)
  const before = server.output().length
  server.process.kill('SIGHUP')
  while (!/revision \S+ → /.test(server.output().slice(before))) await delay(10)
}

async function fresh() {
  const key = randomKey()
  await chain.mint(addressOf(key), 10_000n)
  return sign(await challengeOf(work), key)
}

t.test('holds the operator’s highest fee, uncharged, and accepts a higher one while it runs', async (t) => {
  const payment = await fresh()
  const runs = workplace.runs()
  const response = await send(work, payment.header)
  t.equal(response.status, 503)
  t.ok(response.headers.get('retry-after'))
  t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
  t.strictSame(await onlooker.uses(), [])
  t.notOk(node.calls().includes('eth_sendRawTransaction'))
  t.equal(workplace.runs(), runs, 'no work was done for it')
  await reload('{ base: { max_fee_gwei: 20 } }')
  t.equal((await send(work, payment.header)).status, 200)
  t.equal((await onlooker.uses()).length, 1)
})

t.test('waits for two blocks when the operator requires two', async (t) => {
  await reload('{ base: { max_fee_gwei: 20, confirmations: 2 } }')
  const payment = await fresh()
  const before = (await onlooker.uses()).length
  let answered = false
  const waiting = send(work, payment.header).then((response) => {
    answered = true
    return response
  })
  while ((await onlooker.uses()).length === before) await delay(10)
  const polls = called('eth_getTransactionReceipt')
  while (called('eth_getTransactionReceipt') < polls + 3) await delay(10)
  t.notOk(answered, 'charged, and looked at three times')
  await mischief.mine()
  t.equal((await waiting).status, 200)
})

t.test('settles with two keys of one operator side by side', async (t) => {
  await reload('{ base: { max_fee_gwei: 20 } }')
  const payments = []
  for (let count = 0; count < 12; count += 1) payments.push(await fresh())
  const before = (await onlooker.uses()).length
  const answers = await Promise.all(payments.map(({ header }) => send(work, header)))
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
  const fresher = (await onlooker.uses()).slice(before)
  t.equal(fresher.length, 12)
  const senders = await Promise.all(
    fresher.map(async ({ transaction }) => {
      const { from } = await mischief.client.getTransaction({ hash: `0x${transaction.slice(2)}` })
      return from
    }),
  )
  t.strictSame([...new Set(senders)].toSorted(), keys.map((key) => addressOf(key).toLowerCase()).toSorted())
  t.notMatch(server.output(), /unexpected/)
})

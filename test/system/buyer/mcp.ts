import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, type ClientCapabilities } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { openBreakingProxy } from '../../support/breaking-proxy.ts'
import { openBridge, recordIn, resultOf, type BridgeOptions } from '../../support/bridge.ts'
import { runLine } from '../../support/run-command.ts'
import { openMppService } from '../../support/mpp.ts'
import { addressOf } from '../../support/payment.ts'
import { MAIN, nodeCommand } from '../../support/server.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../fixtures/mcp/catalog.yaml', import.meta.url))
const shop = await openShop(async () => ({ CATALOG }))
t.teardown(() => shop.close())
const tools = `${shop.url}/mcp/tools`
const WORK = 'other_work'

/** At the tools of the shop, unless another address is given. */
const openProxy = (t: Test, options: Omit<BridgeOptions, 'url'> & { readonly url?: string }) =>
  openBridge(t, { url: tools, ...options })

t.test(
  'buys five calls within the budget, passes receipts on, and refuses the sixth with what to do',
  async (t) => {
    const stateDir = t.testdir()
    const key = await shop.wallet()
    const proxy = await openProxy(t, { key, stateDir })
    const listed = await proxy.list()
    t.strictSame(
      listed.map(({ name }) => name),
      ['paint', WORK, 'whoami', 'forget', 'scan', 'write_json', 'write_list'],
    )
    t.match(listed[1], { description: /Price: \$0\.01/, inputSchema: { type: 'object' } })
    t.notOk(listed[1]?.['_meta'], 'the client is not asked to pay')
    for (let n = 1; n <= 5; n += 1) {
      const { isError, content, text, meta } = await proxy.call(WORK, { n })
      t.notOk(isError, text)
      t.match(content, { n, payer: addressOf(key) })
      t.match(text, /Paid 0\.01 USD on Base, transaction 0x[0-9a-f]{64}\. 0\.0\d of 0\.05 USD are left\.$/)
      t.match(meta['ratecard/receipt'], {
        payment: /^pay_/,
        amount: '0.01',
        currency: 'USD',
        network: 'eip155:8453',
        transaction: /^0x[0-9a-f]{64}$/,
        payer: addressOf(key),
        charged: 'yes',
      })
    }
    const sixth = await proxy.call(WORK, { n: 6 })
    t.ok(sixth.isError)
    t.match(
      sixth.text,
      /^other_work costs 0\.01 USD, and 0\.05 of the budget of 0\.05 USD are spent since 20\d\d-\d\d-\d\d\. Nothing was paid\. .*--max\.$/,
    )
    t.equal(await shop.onchain.charges(addressOf(key)), 5)
    t.match((await proxy.call('whoami', {})).content, { signer: null }, 'what is free passes through')
    t.match((await proxy.call(WORK, { n: 'x' })).content, { detail: [{ loc: ['arguments', 'n'] }] })
    t.equal(await proxy.close(), 0)
    t.match(JSON.parse(recordIn(stateDir)), { spent: '50000', open: {} })
    t.notMatch(recordIn(stateDir) + proxy.log(), key.slice(2), 'no key is kept or printed')
    const again = await openProxy(t, { key, stateDir })
    t.match(
      (await again.call(WORK, { n: 7 })).text,
      /of the budget of 0\.05 USD are spent/,
      'nor after a restart',
    )
    t.equal(await shop.onchain.charges(addressOf(key)), 5)
  },
)

t.test('refuses what costs more than --max-per-call', async (t) => {
  const key = await shop.wallet()
  const proxy = await openProxy(t, {
    key,
    stateDir: t.testdir(),
    flags: ['--max-per-call', '0.009999', '--max', '5'],
  })
  const { isError, text } = await proxy.call(WORK, { n: 1 })
  t.ok(isError)
  t.match(text, /costs 0\.01 USD, more than the 0\.009999 USD allowed for one call.*--max-per-call/)
  t.equal(await shop.onchain.charges(addressOf(key)), 0)
})

t.test('keeps several processes together within one budget', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const proxies = await Promise.all(Array.from({ length: 3 }, () => openProxy(t, { key, stateDir })))
  const results = await Promise.all(
    proxies.flatMap((proxy, place) => [1, 2, 3, 4].map((n) => proxy.call(WORK, { n: place * 10 + n }))),
  )
  t.equal(results.filter(({ isError }) => !isError).length, 5)
  t.equal(results.filter(({ text }) => /budget of 0\.05 USD/.test(text)).length, 7)
  t.equal(await shop.onchain.charges(addressOf(key)), 5)
})

t.test('pays once for the same call from two processes at the same time', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const proxies = await Promise.all([openProxy(t, { key, stateDir }), openProxy(t, { key, stateDir })])
  const [first, second] = proxies
  const [began, begin] = gate()
  const [released, release] = gate()
  shop.upstream.during(async () => {
    begin()
    await released
  })
  const earlier = first.call(WORK, { n: 50 })
  await began
  const later = second.call(WORK, { n: 50 })
  await until('the second process has found the payment', () => /sent again/.test(second.log()))
  release()
  shop.upstream.during(async () => {})
  const results = [await earlier, await later]
  for (const { isError, content } of results)
    t.match({ isError, content }, { isError: false, content: { n: 50 } })
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
  for (const proxy of proxies) await proxy.close()
  t.match(JSON.parse(recordIn(stateDir)), { spent: '10000', open: {} })
})

t.test('charges once and answers after kill -9 while the work runs', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const first = await openProxy(t, { key, stateDir })
  const [began, begin] = gate()
  const [killed, finish] = gate()
  shop.upstream.during(async () => {
    begin()
    await killed
  })
  void first.call(WORK, { n: 60 }).catch(() => undefined)
  await began
  await first.kill()
  finish()
  shop.upstream.during(async () => {})
  const second = await openProxy(t, { key, stateDir })
  const { isError, text, content } = await second.call(WORK, { n: 60 })
  t.notOk(isError, text)
  t.match(content, { n: 60 })
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
  await second.close()
  t.match(JSON.parse(recordIn(stateDir)), { spent: '10000', open: {} })
})

t.test('charges once and answers when an answer is lost, also after kill -9', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const line = await openBreakingProxy(shop.url)
  t.teardown(() => line.close())
  const url = `${line.url}/mcp/tools`
  const first = await openProxy(t, { key, stateDir, url })
  shop.upstream.during(async () => line.cut('within'))
  const lost = await first.call(WORK, { n: 70 })
  t.equal(line.cuts(), 1)
  t.notOk(lost.isError, lost.text)
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
  void first.call(WORK, { n: 71 }).catch(() => undefined)
  await until('the second answer is lost', () => line.cuts() === 2)
  await first.kill()
  shop.upstream.during(async () => {})
  const second = await openProxy(t, { key, stateDir, url })
  const found = await second.call(WORK, { n: 71 })
  t.match(found, { isError: false, content: { n: 71 } }, found.text)
  t.equal(await shop.onchain.charges(addressOf(key)), 2)
  await second.close()
  t.match(JSON.parse(recordIn(stateDir)), { spent: '20000', open: {} })
})

t.test('gives the amount back to the budget when work has failed uncharged', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const proxy = await openProxy(t, { key, stateDir })
  shop.upstream.during(() => Promise.reject(new Error('no')))
  const failed = await proxy.call(WORK, { n: 80 })
  shop.upstream.during(async () => {})
  t.match(failed, { isError: true, text: /Nothing was charged/ })
  t.match(JSON.parse(recordIn(stateDir)), { spent: '0', open: {} })
  t.notOk((await proxy.call(WORK, { n: 80 })).isError)
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('signs no new payment while the outcome of a payment is unknown', async (t) => {
  const stateDir = t.testdir()
  const key = await shop.wallet()
  const proxy = await openProxy(t, { key, stateDir })
  shop.node.set('broken_after_send')
  const unknown = await proxy.call(WORK, { n: 90 })
  t.match(unknown, { isError: true, text: /its outcome is not known.*charged once at most/ })
  t.match(unknown.meta['ratecard/receipt'], { charged: 'unknown' })
  shop.node.set('open')
  t.match(await proxy.call(WORK, { n: 90 }), { isError: false, content: { n: 90 } })
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('asks the user above the threshold, in clients of both eras', async (t) => {
  const key = await shop.wallet()
  const flags = ['--max-per-call', '0.02', '--max', '5', '--ask-above', '0.005']
  const stateDir = t.testdir()
  const asked: string[] = []
  const answers: ('accept' | 'decline')[] = ['decline', 'accept']
  const user = (message: string): 'accept' | 'decline' => {
    asked.push(message)
    return answers.shift() ?? 'decline'
  }
  const proxy = await openProxy(t, { key, stateDir, flags, user })
  t.match(
    (await proxy.call(WORK, { n: 1 })).text,
    /0\.01 USD for other_work were declined\. Nothing was paid/,
  )
  t.equal(await shop.onchain.charges(addressOf(key)), 0)
  t.notOk((await proxy.call(WORK, { n: 1 })).isError)
  t.match(asked, [/Pay 0\.01 USD \(USDC on Base\) to localhost:\d+ for one call of other_work\?/, /Pay/])
  const modern = await openProxy(t, { key, stateDir, flags, user })
  const question = await modern.callModern(WORK, { n: 2 })
  t.match(question, {
    resultType: 'input_required',
    inputRequests: { 'pay-10000': { method: 'elicitation/create', params: { message: /Pay 0\.01 USD/ } } },
  })
  const answered = { inputResponses: { 'pay-10000': { action: 'accept', content: {} } } }
  t.match(resultOf(await modern.callModern(WORK, { n: 2 }, answered)), { isError: false, content: { n: 2 } })
  const mute = await openProxy(t, { key, stateDir, flags })
  t.match((await mute.call(WORK, { n: 3 })).text, /cannot ask its user\. Nothing was paid.*--ask-above/)
  t.equal(await shop.onchain.charges(addressOf(key)), 2)
})

t.test('asks the user of the official client above 0.05 USD, unless another amount is given', async (t) => {
  const place = t.testdir({
    'catalog.yaml': readFileSync(CATALOG, 'utf8').replaceAll('price: 0.01', 'price: 0.06'),
  })
  const dear = await shop.branch({ CATALOG: join(place, 'catalog.yaml') })
  t.teardown(() => dear.stop())
  const key = await shop.wallet()
  const asked: string[] = []
  const connect = async (capabilities: ClientCapabilities, limits: readonly string[]): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' }, { capabilities })
    if (capabilities.elicitation !== undefined)
      client.setRequestHandler('elicitation/create', ({ params }) => {
        asked.push(params.message)
        return { action: 'accept', content: {} }
      })
    const [command, args] = nodeCommand([
      MAIN,
      'mcp',
      `${dear.url}/mcp/tools`,
      '--data-dir',
      t.testdirName,
      '--max-per-call',
      '0.1',
      '--max',
      '5',
      ...limits,
    ])
    const env = { PATH: process.env['PATH'] ?? '', PAYER_PRIVATE_KEY: key }
    await client.connect(new StdioClientTransport({ command, args: [...args], env, stderr: 'ignore' }))
    t.teardown(() => client.close())
    return client
  }
  const able = await connect({ elicitation: {} }, [])
  t.notOk((await able.callTool({ name: WORK, arguments: { n: 1 } })).isError)
  t.match(asked, [/^Pay 0\.06 USD .* for one call of other_work\?/])
  const higher = await connect({ elicitation: {} }, ['--ask-above', '0.06'])
  t.notOk((await higher.callTool({ name: WORK, arguments: { n: 2 } })).isError)
  t.equal(asked.length, 1, 'not at the amount itself')
  const mute = await connect({}, [])
  t.notOk((await mute.callTool({ name: WORK, arguments: { n: 3 } })).isError, 'up to --max-per-call')
  t.equal(await shop.onchain.charges(addressOf(key)), 3)
})

t.test('pays by MPP at the servers that the index of a shop names', async (t) => {
  const mpp = await openMppService()
  t.teardown(() => mpp.close())
  const key = await mpp.chain.wallet()
  const proxy = await openProxy(t, {
    key,
    stateDir: t.testdir(),
    url: mpp.url,
    flags: ['--max-per-call', '0.02', '--max', '0.05', '--protocol', 'mpp'],
    env: { RPC_URL_4217: mpp.chain.rpcUrl },
  })
  const { isError, text, meta } = await proxy.call('work', { n: 3 })
  t.notOk(isError, text)
  t.match(meta['ratecard/receipt'], { network: 'eip155:4217', transaction: /^0x/, charged: 'yes' })
  t.equal((await mpp.chain.received(mpp.recipient)).length, 1)
})

t.test('says what is wrong before a client connects', async (t) => {
  const run = (argv: readonly string[], variables: Record<string, string> = {}) =>
    runLine(['mcp', ...argv, '--data-dir', t.testdirName], { variables })
  const amounts = ['--max-per-call', '0.02', '--max', '0.05']
  t.match(await run(['api.example.com', ...amounts]), { code: 64, err: /is not the URL of a service/ })
  t.match(await run([tools, '--max', '5']), { code: 64, err: /--max-per-call and --max are required/ })
  t.match(await run([tools, ...amounts, '--ask-above', '1e3']), { code: 64, err: /--ask-above takes USD/ })
  t.match(await run([tools, ...amounts]), { code: 1, err: /set PAYER_PRIVATE_KEY/ })
  const wallet = { PAYER_PRIVATE_KEY: await shop.wallet() }
  t.match(await run(['http://127.0.0.1:9', ...amounts], wallet), { code: 1, err: /does not answer/ })
  t.match(await run([`${shop.url}/health`, ...amounts], wallet), { code: 1, err: /lists no tools/ })
})

function gate(): readonly [Promise<void>, () => void] {
  let open = (): void => undefined
  return [new Promise<void>((resolve) => (open = resolve)), () => open()]
}

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Challenge } from 'mppx'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { startEvmChain } from '../../../src/sandbox/evm/chain.ts'
import { findNetwork } from '../../../src/engine/base/networks.ts'
import { catalogText, HANDLERS } from '../../support/catalogs.ts'
import { addressOf, challengeOf, randomKey, readHeader, stockFetch } from '../../support/payment.ts'
import { runLine } from '../../support/run-command.ts'
import { runProgram, startServer } from '../../support/server.ts'
import { PATH_USD, startTempo, stockPayer } from '../../support/tempo.ts'

const TEMPO_MODERATO = 42431
const head = (payments: string): string => `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: ${payments}
documents: { index: /, status-json: /status.json, openapi: /openapi.json, llms: /llms.txt, x402: /x402.json, agent-card: /card.json }
`
const TEST = `{ currency: USD, x402: { networks: [base-sepolia] }, mpp: { method: tempo, intent: charge, chain: ${TEMPO_MODERATO}, currency: '${PATH_USD}' } }`
const ROUTES = '  /paid/greet: { price: 0.005, summary: Greets, timeout: 10s }\n'

const directory = t.testdir({
  'catalog.yaml': catalogText(ROUTES, head(TEST)),
  handlers: { 'package.json': '{"type":"module"}', 'index.js': HANDLERS },
})
const catalog = join(directory, 'catalog.yaml')
const args = ['--catalog', catalog]

const sepolia = findNetwork('base-sepolia')
if (sepolia === undefined) throw new Error('Base Sepolia is not known')
const [evm, tempo] = await Promise.all([
  startEvmChain({
    chainId: sepolia.chainId,
    asset: sepolia.token.address,
    tokenName: sepolia.token.name,
    tokenVersion: sepolia.token.version,
  }),
  startTempo(TEMPO_MODERATO),
])
t.teardown(() => Promise.all([evm.stop(), tempo.stop()]))
const signer = randomKey()
await evm.setGas(addressOf(signer), 10n ** 18n)
const MEANS = {
  NODE_ENV: 'production',
  HOST: '127.0.0.1',
  PAY_TO: addressOf(randomKey()),
  SETTLER_PRIVATE_KEY: signer,
  [`RPC_URL_${sepolia.chainId}`]: evm.rpcUrl,
  [`RPC_URL_${TEMPO_MODERATO}`]: tempo.rpcUrl,
  MPP_RECIPIENT: addressOf(randomKey()),
  MPP_SECRET_KEY: randomKey(),
}

t.test('refuses to sell on test networks without permission, and names the setting', async (t) => {
  const { code, stderr } = await runProgram(
    ['serve', '--port', '0', '--data-dir', t.testdir(), ...args],
    MEANS,
  )
  t.equal(code, 1)
  t.match(stderr, /sells on test networks, whose money is worthless: .* set ALLOW_TEST_NETWORKS=1/)
})

t.test(
  'serves a catalog of test networks in the sandbox without permission, which says so of itself',
  async (t) => {
    const server = await startServer({ args: [...args, '--sandbox'] })
    t.teardown(() => server.stop())
    const response = await fetch(`${server.url}/paid/greet`)
    t.equal(response.headers.get('ratecard-sandbox'), '1')
    t.notMatch(await response.text(), 'testnet')
    t.notMatch(readHeader(response, 'payment-required'), { accepts: [{ extra: { testnet: true } }] })
    t.notMatch(server.output(), 'test network')
  },
)

t.test('fails the examination for production, with and without permission', async (t) => {
  for (const variables of [MEANS, { ...MEANS, ALLOW_TEST_NETWORKS: '1' }]) {
    const { code, out } = await runLine(['doctor', '--production', '--json', ...args], { variables })
    t.equal(code, 1)
    t.match(out, 'the catalog sells on test networks, whose money is worthless')
  }
})

t.test('with permission', async (t) => {
  const server = await startServer({ args, env: { ...MEANS, ALLOW_TEST_NETWORKS: '1' } })
  t.teardown(() => server.stop())
  const url = `${server.url}/paid/greet`

  t.test('tells the operator at the start', async (t) => {
    t.match(server.output(), 'selling for the worthless money of test networks')
  })

  t.test('tells buyers in the offers of both protocols, and in the body of a 402', async (t) => {
    const response = await fetch(url)
    const { accepts } = await challengeOf(url)
    t.match(accepts, [{ network: sepolia.id, extra: { testnet: true } }])
    t.match(Challenge.fromResponse(response).request, { methodDetails: { testnet: true } })
    t.match(await response.json(), { testnet: true })
  })

  t.test('tells readers in every document and page', async (t) => {
    const read = async (path: string, accept = '*/*'): Promise<string> =>
      (await fetch(server.url + path, { headers: { accept } })).text()
    t.match(JSON.parse(await read('/')), { testnet: true, notice: /worthless test money/ })
    t.match(JSON.parse(await read('/status.json')), { testnet: true })
    t.match(JSON.parse(await read('/x402.json')), {
      description: /worthless test money/,
      payment: { testnet: true },
    })
    t.match(JSON.parse(await read('/card.json')), {
      description: /worthless test money/,
      payments: { testnet: true },
    })
    t.match(JSON.parse(await read('/openapi.json')), {
      info: { title: 'Small shop (test network)', description: /worthless test money/ },
    })
    t.match(await read('/llms.txt'), 'worthless test money')
    for (const path of ['/', '/paid/greet']) t.match(await read(path, 'text/html'), 'worthless test money')
  })

  t.test('takes the payments of unmodified clients of both protocols', async (t) => {
    const buyer = randomKey()
    await evm.mint(addressOf(buyer), 1_000_000n)
    t.equal((await stockFetch(buyer)(url)).status, 200)
    const account = privateKeyToAccount(await tempo.wallet())
    const paid = await stockPayer(tempo.rpcUrl, account, fetch, TEMPO_MODERATO).fetch(url)
    t.equal(paid.status, 200)
    t.ok(paid.headers.has('payment-receipt'))
  })

  t.test('keeps its revision when the file mixes in a real network', async (t) => {
    writeFileSync(
      catalog,
      catalogText(ROUTES, head('{ currency: USD, x402: { networks: [base-sepolia, base] } }')),
    )
    server.process.kill('SIGHUP')
    await server.said(/catalog\.yaml:3:\d+ networks_mixed/)
    t.match((await challengeOf(url)).accepts, [{ network: sepolia.id }])
  })
})

t.test('keeps its revision when the file changes to test networks', async (t) => {
  const text = catalogText(ROUTES, head('{ currency: USD, x402: { networks: [base] } }'))
  writeFileSync(catalog, text)
  const server = await startServer({ args, env: { ...MEANS, RPC_URL_8453: 'http://127.0.0.1:1' } })
  t.teardown(() => server.stop())
  writeFileSync(catalog, text.replace('[base]', '[base-sepolia]'))
  server.process.kill('SIGHUP')
  await server.said(/ALLOW_TEST_NETWORKS=1/)
  t.match((await challengeOf(`${server.url}/paid/greet`)).accepts, [{ network: 'eip155:8453' }])
})

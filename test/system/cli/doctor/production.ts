import { createServer as createSecureServer } from 'node:https'
import { createServer } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { SITE_CERTIFICATE, SITE_KEY } from '../../../../src/service/stand-ins/web/certificates.ts'
import { startBase } from '../../../support/base-chain.ts'
import { catalogText } from '../../../support/catalogs.ts'
import { runLine } from '../../../support/run-command.ts'
import { listening } from '../../../support/http.ts'
import { openRpcInterceptor } from '../../../support/rpc-proxy.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { runProgram, startServer } from '../../../support/server.ts'

const PAYEE = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const SIGNER = randomKey()
const ROUTES = `  /paid/greet: { price: 0.005, summary: Greets, sources: [tides] }
sources:
  tides: { title: Tide tables, resale: unknown, terms: 'https://tides.example/terms' }
`

const HEAD = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base, polygon] } }
documents: { index: /, openapi: /openapi.json }
`

const folder = t.testdir({
  'catalog.yaml': catalogText(ROUTES, HEAD),
  handlers: {
    'index.js': 'export const handlers = { greet: async () => ({ source: [], body: {} }) }',
  },
})
const files = ['--catalog', join(folder, 'catalog.yaml'), '--handlers', join(folder, 'handlers')]

const chain = await startBase()
t.teardown(() => chain.stop())
const asked = async (method: string, ...params: unknown[]): Promise<void> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  await fetch(chain.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
}
await asked('anvil_setBalance', addressOf(SIGNER), `0x${(10n ** 18n).toString(16)}`)

const MEANS = {
  NODE_ENV: 'production',
  PAY_TO: PAYEE,
  SETTLER_PRIVATE_KEY: SIGNER,
  RPC_URL_8453: chain.rpcUrl,
}
const server = await startServer({ args: files, env: { ...MEANS, HOST: '127.0.0.1' } })
t.teardown(() => server.stop())

interface CheckResult {
  readonly level: string
  readonly subject: string
  readonly message: string
}

async function examine(
  variables: Readonly<Record<string, string>>,
  ...argv: string[]
): Promise<{ readonly code: number; readonly said: string; readonly results: readonly CheckResult[] }> {
  const { code, out } = await runLine(['doctor', ...argv, '--production', '--json', ...files], { variables })
  const { results } = JSON.parse(out) as { results: CheckResult[] }
  return {
    code,
    results,
    said: results.map(({ level, subject, message }) => `${level} ${subject}: ${message}`).join('\n'),
  }
}

t.test('reports what settles and what is still to be configured', async (t) => {
  const { said } = await examine({ ...MEANS, BASE_URL: server.url })
  for (const line of [
    `ok addresses: PAY_TO ${PAYEE}`,
    'ok Base: RPC_URL_8453 answers as chain 8453',
    'ok Base: USDC signs as USD Coin version 2',
    `ok Base: signer ${addressOf(SIGNER)} has 1 ETH, for `,
    'warn Polygon: not offered before RPC_URL_137 is set',
    'warn ledger: .ratecard/ledger, on this machine only',
    `ok BASE_URL: ${server.url} answers an unpaid call with 402`,
    'ok CORS: agents in a browser can read challenges and send payments',
    'ok headers: a 402 has ',
    'ok headers: PAYMENT-REQUIRED takes ',
    'warn Tide tables: does not say whether it may be sold: /paid/greet; terms: https://tides.example/terms',
    // A test has no other address.
    `fails BASE_URL: ${server.url} is reached from this machine only`,
  ])
    t.match(said, line)
  t.equal(said.match(/^fails/gm)?.length, 1)
  t.notMatch(said, 'environment')
})

t.test('warns at start and in the check of a metered route that nobody can buy', async (t) => {
  const routes = `  /paid/greet:
    price: { metered: [{ bytes_of: answer, price: 0.0001 }], ceiling: 0.01 }
    summary: Greets
  /paid/part: { price: 0.01, handler: greet, summary: Greets for a fixed price }
`
  const other = t.testdir({ 'catalog.yaml': catalogText(routes, HEAD) })
  const named = ['--catalog', join(other, 'catalog.yaml'), ...files.slice(2)]
  const facilitated = { ...MEANS, SETTLER_PRIVATE_KEY: '', FACILITATOR_URL: 'http://127.0.0.1:9' }
  const warning =
    /greet: not sold \(503 not_configured\): .* not sold before SETTLER_PRIVATE_KEY and RPC_URL_8453 are set/
  const said = async (variables: Readonly<Record<string, string>>): Promise<string> =>
    (await runLine(['doctor', '--production', '--json', ...named], { variables })).out
  t.match(await said(facilitated), warning)
  t.notMatch(await said(MEANS), /not_configured/)
  for (const [env, warns] of [
    [facilitated, true],
    [MEANS, false],
  ] as const) {
    const { SETTLER_PRIVATE_KEY: signer, ...rest } = env
    const key = signer === '' ? {} : { SETTLER_PRIVATE_KEY: signer }
    const started = await startServer({ args: named, env: { ...rest, ...key, HOST: '127.0.0.1' } })
    const { status } = await fetch(`${started.url}/paid/greet`)
    t.equal(status, warns ? 503 : 402)
    t.equal(warning.test(started.output()), warns, started.output())
    await started.stop()
  }
})

t.test('looks whether the site behind the catalog answers', async (t) => {
  const site = await listening(createServer((_, response) => response.writeHead(404).end()))
  const other = t.testdir({ 'catalog.yaml': catalogText(ROUTES, `${HEAD}passthrough: ${site.url}\n`) })
  const named = ['--catalog', join(other, 'catalog.yaml'), ...files.slice(2)]
  const run = () => runLine(['doctor', '--production', ...named], { variables: MEANS })
  t.match((await run()).out, /ok +passthrough +\S+ answers with 404/)
  await site.close()
  t.match((await run()).out, /fails +passthrough +\S+ cannot be reached: nothing listens there/)
})

t.test('says at start which source may not be sold, and --production-strict refuses to start', async (t) => {
  const open =
    'source tides: does not say whether it may be sold: /paid/greet; terms: https://tides.example/terms'
  t.match(server.output(), open)
  const strict = ['--production-strict', '--port', '0', '--data-dir']
  const env = { ...MEANS, HOST: '127.0.0.1' }
  const refused = await runProgram(['serve', ...files, ...strict, t.testdir()], env)
  t.equal(refused.code, 1)
  t.match(refused.stderr, `ratecard serve: ${open}`)
  t.equal(refused.stdout, '', 'it does not listen')

  const place = t.testdir({
    'catalog.yaml': catalogText(ROUTES.replace('resale: unknown', 'resale: allowed'), HEAD),
  })
  const sound = ['--catalog', join(place, 'catalog.yaml'), '--handlers', join(folder, 'handlers')]
  const allowed = await startServer({ args: [...sound, '--production-strict'], env })
  t.teardown(() => allowed.stop())
  t.equal((await fetch(`${allowed.url}/paid/greet`)).status, 402)
  t.notMatch(allowed.output(), 'may be sold')
})

t.test('finds every setting that would lose money before the first payment', async (t) => {
  const poor = randomKey()
  const wrong = await examine({
    PAY_TO: addressOf(poor),
    SETTLER_PRIVATE_KEY: poor,
    PAYER_PRIVATE_KEY: randomKey(),
    RPC_URL_8453: chain.rpcUrl,
    RPC_URL_137: chain.rpcUrl,
    BASE_URL: 'http://api.example.com',
    LEDGER_UNSAFE: '1',
  })
  t.equal(wrong.code, 1)
  for (const line of [
    'warn environment: NODE_ENV is not production',
    'warn environment: PAYER_PRIVATE_KEY is set',
    'warn addresses: PAY_TO is the account that pays for gas',
    `fails Base: signer ${addressOf(poor)} has 0 ETH: not enough for a payment`,
    'fails Polygon: RPC_URL_137 leads to chain 8453',
    'warn ledger: LEDGER_UNSAFE is set',
    'fails BASE_URL: http://api.example.com has no TLS',
  ])
    t.match(wrong.said, line)

  const silent = await examine({
    ...MEANS,
    RPC_URL_8453: 'http://127.0.0.1:1/secret-path',
    PAY_TO: PAYEE.replace('5aA', '5AA'),
  })
  t.match(silent.said, /fails addresses: .*PAY_TO .*EIP-55/)
  t.match(silent.said, 'fails Base: RPC_URL_8453 does not answer')
  t.match(silent.said, 'fails BASE_URL: is not set')

  const { stdout, code } = await runProgram(['doctor', '--production', ...files], {
    ...MEANS,
    PAY_TO: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    RPC_URL_8453: 'http://127.0.0.1:1/secret-path',
  })
  t.equal(code, 1)
  t.match(stdout, /fails +addresses +PAY_TO .* its key is known to others/)
  t.match(stdout, /^\d+ failed, \d+ warnings, \d+ ok$/m)
  for (const said of [wrong.said, silent.said, stdout])
    for (const secret of [SIGNER, poor, SIGNER.slice(2), 'secret-path']) t.notMatch(said, secret)
})

t.test('finds a token that buyers refuse to sign for', async (t) => {
  // Every word of the token is another one's.
  const other = await openRpcInterceptor(chain.rpcUrl, ({ method }) =>
    method === 'eth_call'
      ? { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: `0x${'0'.repeat(64)}` }) }
      : undefined,
  )
  t.teardown(() => other.close())
  const { said } = await examine({ ...MEANS, RPC_URL_8453: other.url })
  t.match(said, /^fails Base: no token with EIP-3009 answers at 0x8335/m)
})

t.test('finds a facilitator that refuses us or settles on other networks', async (t) => {
  let supported: object | undefined
  const facilitator = await listening(
    createServer((_, response) => {
      response.setHeader('content-type', 'application/json')
      response.writeHead(supported === undefined ? 401 : 200).end(JSON.stringify(supported ?? {}))
    }),
  )
  t.teardown(() => facilitator.close())
  const means = { PAY_TO: PAYEE, FACILITATOR_URL: facilitator.url, FACILITATOR_TOKEN: 'token-of-ours' }
  const refused = await examine(means)
  t.match(refused.said, /^fails facilitator: .*check its credentials/m)
  t.notMatch(refused.said, 'token-of-ours')
  supported = {
    kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }],
    extensions: [],
    signers: {},
  }
  const part = await examine(means)
  t.match(part.said, /^fails facilitator: Polygon \(eip155:137\) cannot be offered/m)
  t.match(part.said, /^warn facilitator: Base .*without RPC_URL_8453/m)
  supported = {
    kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:*' }],
    extensions: [],
    signers: {},
  }
  t.match((await examine(means)).said, /^ok facilitator: settles every network/m)
})

t.test('finds a proxy in front of the server that removes headers or query parameters', async (t) => {
  let change: (name: string, value: string) => string | undefined = (_, value) => value
  const front = await listening(
    createServer((request, response) => {
      const { method = 'GET', url = '/' } = request
      void fetch(server.url + url, { method }).then(async (answer) => {
        for (const [name, value] of answer.headers) {
          const passed = /^content-(?:encoding|length)|^transfer/.test(name) ? undefined : change(name, value)
          if (passed !== undefined) response.setHeader(name, passed)
        }
        response.writeHead(answer.status).end(await answer.text())
      })
    }),
  )
  t.teardown(() => front.close())
  const through = async (): Promise<string> => (await examine(MEANS, front.url)).said
  t.match(await through(), 'ok CORS')
  change = (name, value) => (name === 'access-control-allow-origin' ? 'https://one.example' : value)
  t.match(await through(), 'fails CORS: Access-Control-Allow-Origin is https://one.example, not *')
  change = (name, value) => (name === 'access-control-expose-headers' ? 'etag' : value)
  t.match(await through(), 'fails CORS: payment-required is not exposed')
  change = (name, value) => (name === 'access-control-allow-headers' ? 'accept' : value)
  t.match(
    await through(),
    'fails CORS: payment-signature may not be sent, x-payment may not be sent, authorization may not be sent',
  )
  change = (name, value) => (name === 'payment-required' ? undefined : value)
  t.match(await through(), 'warn headers: payment-required does not arrive')
  change = (name, value) => (name === 'cache-control' ? 'x'.repeat(9_000) : value)
  t.match(await through(), /fails headers: a 402 has \d+ bytes of headers, and proxies take 8192/)
  t.match((await examine(MEANS, 'http://127.0.0.1:9')).said, /warn BASE_URL: .*; ask again when it serves/)

  const secure = await listening(
    createSecureServer({ key: SITE_KEY, cert: SITE_CERTIFICATE }, (_, response) => response.end()),
  )
  t.teardown(() => secure.close())
  const { said } = await examine({
    ...MEANS,
    BASE_URL: secure.url.replace('http://127.0.0.1', 'https://localhost'),
  })
  t.match(said, /fails TLS: .*its certificate is not accepted/)
  const strange = await listening(createServer((_, response) => response.end('hello')))
  t.teardown(() => strange.close())
  t.match((await examine(MEANS, strange.url)).said, /fails BASE_URL: .* answers 200 instead of 402/)
})

t.test('finds a Redis that would lose payments', { skip: redisAbsence() ?? false }, async (t) => {
  const redis = await startRedis({ policy: 'allkeys-lru', password: 'word-of-ours' })
  t.teardown(() => redis.stop())
  const forgets = await examine({ ...MEANS, REDIS_URL: redis.url })
  t.match(forgets.said, /^fails ledger: .*maxmemory-policy is allkeys-lru: payments are dropped/m)
  t.notMatch(forgets.said, 'word-of-ours')
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  t.match(
    (await examine({ ...MEANS, REDIS_URL: redis.url })).said,
    /^ok ledger: redis at .*append-only and without eviction/m,
  )
})

t.test('finds a damaged ledger, and says what to do', async (t) => {
  const dataDir = t.testdir()
  const directory = join(dataDir, 'ledger')
  const ledger = await openLmdbLedger(directory)
  const records = Array.from({ length: 100 }, (_, number) => makeRecord(`x402:${number}`))
  await Promise.all(records.map((record) => ledger.insert(record)))
  await ledger.close()
  t.match((await examine({ ...MEANS, DATA_DIR: dataDir })).said, /^warn ledger: .* on this machine only/m)
  const file = join(directory, 'data.mdb')
  const whole = readFileSync(file)
  // Everything but the two pages that say where the others are.
  writeFileSync(file, whole.fill(0xff, 2 * whole.readUInt32LE(48)))
  const { code, said } = await examine({ ...MEANS, DATA_DIR: dataDir })
  t.equal(code, 1)
  t.match(said, /^fails ledger: the ledger in \S+ is damaged \(.*\): restore it from a backup, or move/m)
})

t.test('reports the errors of a catalog and stops there', async (t) => {
  const broken = join(
    t.testdir({ 'c.yaml': readFileSync(join(folder, 'catalog.yaml'), 'utf8').replace('0.005', '$5') }),
    'c.yaml',
  )
  const { code, err } = await runLine(['doctor', '--production', '--catalog', broken], {
    handlers: ['greet'],
  })
  t.equal(code, 1)
  t.match(err, 'price_not_decimal')
})

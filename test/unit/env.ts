import { homedir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readEnv } from '../../src/env.ts'
import { EnvError } from '../../src/env/env-error.ts'
import { readEnvFile } from '../../src/env/env-file.ts'

function problems(variables: Record<string, string>): readonly string[] {
  try {
    readEnv(variables)
    return []
  } catch (fault) {
    if (fault instanceof EnvError) return fault.problems
    throw fault
  }
}

t.test('gives every unset variable its default', async (t) => {
  const { secret, hide, ...env } = readEnv({})
  t.strictSame(env, {
    production: false,
    allowTestNetworks: false,
    catalog: 'catalog.yaml',
    port: 4021,
    host: '0.0.0.0',
    baseUrl: undefined,
    trustProxy: false,
    dataDir: '.ratecard',
    stateDir: join(homedir(), '.local/state/ratecard'),
    payTo: undefined,
    payToSolana: undefined,
    signerKeys: [],
    feePayerKeys: [],
    channelKeys: [],
    refundKey: undefined,
    svmRefundKey: undefined,
    rpcUrls: {},
    svmRpcUrls: {},
    payerKey: undefined,
    svmPayerKey: undefined,
    facilitators: [],
    mppRecipient: undefined,
    mppSecretKeys: [],
    receiptKeys: [],
    redisUrl: undefined,
    cacheRedisUrl: undefined,
    ledgerUnsafe: false,
    ledgerReplicas: 0,
    mcpUrls: {},
    logLevel: 'info',
    metricsPort: undefined,
    metricsToken: undefined,
    color: undefined,
    drainSeconds: 5,
    service: undefined,
  })
  t.equal(secret('ANYTHING'), undefined)
  t.equal(hide('nothing is hidden'), 'nothing is hidden')
})

t.test('applies every variable', async (t) => {
  const { secret, hide, ...env } = readEnv(
    {
      NODE_ENV: 'production',
      ALLOW_TEST_NETWORKS: '1',
      CATALOG: 'shop.yaml',
      PORT: '8080',
      HOST: '127.0.0.1',
      BASE_URL: 'https://API.example.com/',
      TRUST_PROXY: '1',
      XDG_STATE_HOME: '/var/lib/state',
      DATA_DIR: '/var/lib/ratecard',
      PAY_TO: `0x${'aB'.repeat(20)}, 4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU`,
      SOLANA_FEE_PAYER_KEY: `[1,2,3],${'z'.repeat(88)}`,
      RPC_URL_SOLANA: 'https://sol.example/key',
      SETTLER_PRIVATE_KEY: `0x${'1'.repeat(64)}, ${'2'.repeat(64)}`,
      CHANNEL_AUTHORIZER_KEY: `${'5'.repeat(64)},${'6'.repeat(64)}`,
      REFUND_PRIVATE_KEY: '4'.repeat(64),
      SOLANA_REFUND_PRIVATE_KEY: '[7,8,9]',
      PAYER_PRIVATE_KEY: '3'.repeat(64),
      SOLANA_PAYER_PRIVATE_KEY: '[4,5,6]',
      RPC_URL_8453: 'https://rpc.example/key',
      RPC_URL_137: 'http://127.0.0.1:8545',
      FACILITATOR_URL: 'https://one.example/, https://two.example',
      FACILITATOR_TOKEN: ',bearer-of-two',
      MPP_RECIPIENT: `0x${'cd'.repeat(20)}`,
      MPP_SECRET_KEY: `${'n'.repeat(32)}, ${'o'.repeat(32)}`,
      RECEIPT_PRIVATE_KEY: 'ef'.repeat(32),
      REDIS_URL: 'rediss://:word@ledger.example',
      CACHE_REDIS_URL: 'redis://cache.example/1',
      MCP_URL: 'https://mcp.example',
      MEM_URL: 'https://mem.example',
      TOOLS_URL: 'https://tools.example/',
      LOG_LEVEL: 'warn',
      NO_COLOR: '1',
      DRAIN_SECONDS: '20',
      METRICS_PORT: '9464',
      METRICS_TOKEN: 'token of the metrics',
      LEDGER_UNSAFE: 'yes',
      LEDGER_REPLICAS: '2',
      ACME_TOKEN: 'abc',
      SHOE: '43',
      SHOE_URL: 'https://shoes.example/of-ours',
    },
    {
      mcpUrls: { game: 'MCP_URL', memory: 'MEM_URL', tools: 'TOOLS_URL' },
      env: (variables) => {
        variables.conceal('SHOE_URL')
        return { shoe: variables.text('SHOE') }
      },
    },
  )
  t.strictSame(env, {
    production: true,
    allowTestNetworks: true,
    catalog: 'shop.yaml',
    port: 8080,
    host: '127.0.0.1',
    baseUrl: 'https://api.example.com',
    trustProxy: true,
    dataDir: '/var/lib/ratecard',
    stateDir: '/var/lib/state/ratecard',
    payTo: `0x${'aB'.repeat(20)}`,
    payToSolana: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    feePayerKeys: ['[1,2,3]', 'z'.repeat(88)],
    svmRpcUrls: { solana: 'https://sol.example/key' },
    signerKeys: [`0x${'1'.repeat(64)}`, `0x${'2'.repeat(64)}`],
    channelKeys: [`0x${'5'.repeat(64)}`, `0x${'6'.repeat(64)}`],
    refundKey: `0x${'4'.repeat(64)}`,
    svmRefundKey: '[7,8,9]',
    rpcUrls: { 8453: 'https://rpc.example/key', 137: 'http://127.0.0.1:8545' },
    payerKey: `0x${'3'.repeat(64)}`,
    svmPayerKey: '[4,5,6]',
    facilitators: [
      { url: 'https://one.example', token: undefined },
      { url: 'https://two.example', token: 'bearer-of-two' },
    ],
    mppRecipient: `0x${'cd'.repeat(20)}`,
    mppSecretKeys: ['n'.repeat(32), 'o'.repeat(32)],
    receiptKeys: [`0x${'ef'.repeat(32)}`],
    redisUrl: 'rediss://:word@ledger.example',
    cacheRedisUrl: 'redis://cache.example/1',
    ledgerUnsafe: true,
    ledgerReplicas: 2,
    mcpUrls: { game: 'https://mcp.example', memory: 'https://mem.example', tools: 'https://tools.example' },
    logLevel: 'warn',
    metricsPort: 9464,
    metricsToken: 'token of the metrics',
    color: false,
    drainSeconds: 20,
    service: { shoe: '43' },
  })
  t.equal(secret('ACME_TOKEN'), 'abc')
  t.equal(hide('refused: bearer-of-two'), 'refused: [FACILITATOR_TOKEN]')
  t.equal(hide('asked https://shoes.example/of-ours'), 'asked [SHOE_URL]', 'the service hides it')
})

t.test('settles with the facilitator of CDP first where its key is set', async (t) => {
  const read = (variables: Record<string, string>) =>
    readEnv({ CDP_API_KEY_ID: 'id', CDP_API_KEY_SECRET: 'secret', ...variables }).facilitators
  const url = 'https://api.cdp.coinbase.com/platform/v2/x402'
  const cdp = { keyId: 'id', keySecret: 'secret' }
  t.strictSame(read({}), [{ url, token: undefined, cdp }])
  t.strictSame(read({ FACILITATOR_URL: `${url}/,https://two.example`, FACILITATOR_TOKEN: ',two' }), [
    { url, token: undefined, cdp },
    { url: 'https://two.example', token: 'two' },
  ])
  t.match(read({ CDP_FACILITATOR_URL: 'http://127.0.0.1:4/x/' }), [{ url: 'http://127.0.0.1:4/x', cdp }])
  t.throws(() => read({ CDP_API_KEY_ID: '' }), /CDP_API_KEY_ID is missing: CDP_API_KEY_SECRET needs it/)
  t.throws(() => read({ CDP_API_KEY_SECRET: '' }), /CDP_API_KEY_SECRET is missing/)
})

t.test('treats an empty value as unset', async (t) => {
  const names = [
    'PORT',
    'HOST',
    'BASE_URL',
    'PAY_TO',
    'SETTLER_PRIVATE_KEY',
    'REFUND_PRIVATE_KEY',
    'RPC_URL_8453',
    'TRUST_PROXY',
    'DATA_DIR',
  ]
  const env = readEnv(Object.fromEntries(names.map((name) => [name, ' '])))
  t.equal(env.port, 4021)
  t.equal(env.host, '0.0.0.0')
  t.equal(env.payTo, undefined)
  t.strictSame(env.rpcUrls, {})
  t.equal(readEnv({ ACME_TOKEN: '' }).secret('ACME_TOKEN'), undefined)
})

t.test('reports every problem with its variable, and keeps the values of keys private', async (t) => {
  const wrong = {
    PORT: '70000',
    BASE_URL: 'https://api.example.com/v1',
    TRUST_PROXY: 'maybe',
    PAY_TO: '0x12',
    SETTLER_PRIVATE_KEY: 'deadbeef',
    PAYER_PRIVATE_KEY: `0x${'g'.repeat(64)}`,
    RPC_URL_8453: 'wss://rpc.example',
  }
  const told = problems(wrong)
  t.equal(told.length, Object.keys(wrong).length)
  for (const name of Object.keys(wrong))
    t.ok(
      told.some((line) => line.startsWith(`${name} must `)),
      name,
    )
  t.notMatch(told.join(), /deadbeef|gggg/)
})

t.test('requires a base URL that is an origin', async (t) => {
  for (const [given, origin] of [
    ['https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com///', 'https://api.example.com'],
    ['https://api.example.com:443', 'https://api.example.com'],
    ['http://localhost:80', 'http://localhost'],
    ['HTTPS://API.EXAMPLE.COM', 'https://api.example.com'],
    ['http://[::1]:4021', 'http://[::1]:4021'],
  ] as const) {
    t.equal(readEnv({ BASE_URL: given }).baseUrl, origin, given)
  }
  for (const given of [
    'https://api.example.com/v1',
    'https://api.example.com?x=1',
    'https://api.example.com#x',
    'https://user:pass@api.example.com',
    'api.example.com',
    'ftp://api.example.com',
    'https://',
    'https://a b',
  ]) {
    t.equal(problems({ BASE_URL: given }).length, 1, given)
  }
})

t.test('freezes the settings', async (t) => {
  const variables: Record<string, string> = { PORT: '1' }
  const env = readEnv(variables)
  variables['PORT'] = '2'
  t.equal(env.port, 1)
  t.ok(Object.isFrozen(env))
})

t.test('reads a file of variables where there is one', async (t) => {
  const directory = t.testdir({
    '.env': '# a comment\nPORT=4100\nexport BASE_URL="https://api.example.com"\n',
  })
  const env = readEnv({ ...readEnvFile(join(directory, '.env')), PORT: '4200' })
  t.match(env, { port: 4200, baseUrl: 'https://api.example.com' }, 'the environment wins')
  t.strictSame(readEnvFile(join(directory, 'absent')), {})
  const marked = t.testdir({ '.env': '\ufeffPORT=4100\n' })
  t.strictSame(readEnvFile(join(marked, '.env')), { PORT: '4100' }, 'without the mark that editors write')
})

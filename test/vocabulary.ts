import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Private names for what the field has a word for, with that word: no file or exported name may be called so. */
const NAMES: Readonly<Record<string, string>> = {
  announce: 'startup-banner',
  Archive: 'LogScanner',
  Aside: 'OperatorRoute',
  assemble: 'compose',
  Assignment: 'Invocation',
  attend: 'serve-worker',
  Bench: 'SettlementContext',
  Books: 'LedgerFixture',
  books: 'ledger-fixture',
  Buying: 'CaseContext',
  Caller: 'RpcTransport',
  Claim: 'PaymentLease',
  complain: 'report',
  Counter: 'OfferContext',
  Daybook: 'UsageStore',
  Desk: 'LeaseContext',
  Director: 'HandlerController',
  director: 'handler-controller',
  directory: 'registry',
  Dispatch: 'SettlementAttempt',
  draft: 'route-yaml',
  Entry: 'PaymentRecord',
  Errand: 'TransactionRequest',
  Face: 'Endpoint',
  Fate: 'OnchainStatus',
  Holding: 'ListCache',
  Lane: 'CaseRunner',
  lane: 'sourced-service',
  likeness: 'similarity',
  Lookout: 'ChainReader',
  LostClaim: 'LeaseLostError',
  manual: 'docs-model',
  means: 'payment-config',
  mend: 'repair',
  Movement: 'ExpectedTransfer',
  'odd-node': 'rpc-interceptor',
  openInterference: 'openChainControl',
  OpenTill: 'SettleableNetwork',
  Order: 'PurchaseRequest',
  Outside: 'ServiceDeps',
  OVERRUN: 'LIMIT_EXCEEDED',
  Pocket: 'ReceivingAccount',
  purse: 'gas-balance',
  readSpied: 'readEstimate',
  'redis-way': 'redis-proxy',
  RedisWay: 'RedisProxy',
  Register: 'NameIndex',
  register: 'name-index',
  resemblance: 'name-similarity',
  shelf: 'build-index',
  Sighting: 'OnchainPayment',
  'source-record': 'source-metrics',
  SourceRecord: 'SourceMetrics',
  spied: 'steamspy-cache',
  Standing: 'StatusModel',
  standing: 'list-status',
  storable: 'validate',
  story: 'explain',
  Subject: 'CheckContext',
  Surroundings: 'CheckInputs',
  Tally: 'RouteCounters',
  telling: 'serialize',
  Testimony: 'RouteClaims',
  Till: 'AcceptedNetwork',
  Tills: 'X402Networks',
  Told: 'CaseResult',
  Turn: 'DistributedLock',
  Unanswered: 'RpcUnavailableError',
  Victim: 'KillableServer',
  victim: 'killable-server',
  Way: 'ConnectionState',
  way: 'node-proxy',
  Which: 'ChainName',
  whole: 'cache-if-complete',
  Witness: 'OnchainClient',
  witness: 'onchain client',
  wording: 'copy',
  Workplace: 'CountingUpstream',
  workplace: 'counting-upstream',
  Workshop: 'ExecutionDeps',
  World: 'Runtime',
  world: 'runtime',
}

/** Metaphors that no identifier in src and test is called by. */
const IDENTIFIERS: Readonly<Record<string, string>> = {
  bench: 'context',
  diary: 'log',
  director: 'controller',
  errand: 'request',
  lane: 'runner',
  mischief: 'chainControl',
  onlooker: 'onchain',
  purse: 'balance',
  spoilt: 'changed',
  storm: 'run',
  tally: 'counts',
  victim: 'killable',
  witness: 'onchain',
  workplace: 'upstream',
  workshop: 'deps',
}

/** Words and phrases that do not occur in comments, messages, documents and the names of tests, with plain English for each. */
const WORDS: Readonly<Record<string, string>> = {
  anew: 'again',
  'begins? a shop': 'creates a project',
  'complain\\w*': 'report',
  dearer: 'more expensive',
  'do not add up': 'fails its checksum',
  'errands?': 'request',
  'in the place of': 'instead of',
  'is too much': 'unexpected argument',
  'kept revision': 'still serving revision',
  'mend(s|ed|ing)?': 'repair',
  'purses?': 'balance',
  'say what to do': 'missing subcommand',
  'beside the': 'next to the',
  'stands (once|twice)': 'occurs once',
  'unless said': 'default',
  whomever: 'anyone',
  'testimon(y|ies)': 'claims',
  'told (at|with|of)': 'reported at',
  'what there is': 'what exists',
  whoever: 'anyone who',
}

/** Where somebody who searches for a term of the field should land. */
const TERMS: Readonly<Record<string, string>> = {
  'access log': 'cli/log.ts',
  bazaar: 'engine/protocols/x402/bazaar.ts',
  batch: 'engine/chains/evm/batch-signer.ts',
  cache: 'engine/cache/cache.ts',
  challenge: 'engine/protocols/x402/challenge.ts',
  credential: 'engine/protocols/mpp/credential.ts',
  etag: 'engine/http/app.ts',
  facilitator: 'engine/protocols/x402/facilitator-client.ts',
  gas: 'engine/chains/evm/account.ts',
  health: 'engine/http/live-pages.ts',
  idempotency: 'engine/purchase/idempotency.ts',
  'json schema': 'engine/catalog/schema.ts',
  'json-rpc': 'engine/chains/evm/chain.ts',
  lease: 'engine/ledger/lease.ts',
  'llms.txt': 'engine/documents/llms.ts',
  metrics: 'cli/metrics.ts',
  nonce: 'engine/chains/evm/account.ts',
  openapi: 'engine/documents/openapi.ts',
  preflight: 'engine/purchase/settlement-flow.ts',
  proxy: 'engine/http/proxy.ts',
  'rate limit': 'engine/cache/rate-limit.ts',
  receipt: 'engine/ledger/payment-record.ts',
  reconcile: 'engine/protocols/reconcile/reconcile.ts',
  recovery: 'engine/purchase/recovery.ts',
  redelivery: 'engine/purchase/redelivery.ts',
  reload: 'engine/reload.ts',
  replay: 'engine/purchase/replay.ts',
  'retry-after': 'engine/http/reply.ts',
  route: 'engine/http/router.ts',
  settle: 'engine/purchase/settlement-flow.ts',
  'sign-in': 'engine/protocols/x402/siwx.ts',
  signature: 'engine/protocols/x402/payload.ts',
  simulate: 'engine/protocols/x402/settlement.ts',
  timeout: 'engine/purchase/execution.ts',
  tool: 'engine/mcp/tool-server.ts',
  validate: 'engine/catalog/validator.ts',
}

function filesBelow(folder: string, endings: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && endings.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/node_modules|(?:^|\/)dist\/|\/data\//.test(path))
    .sort()
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const sources = filesBelow('src', /\.ts$/)

function namesIn(path: string): string[] {
  const exported = read(path).matchAll(
    /^export (?:async )?(?:const|class|interface|type|function\*?|enum) ([\w$]+)/gm,
  )
  const file = path.split('/').at(-1)?.replace(/\.ts$/, '') ?? ''
  return [file, ...Array.from(exported, ([, name = '']) => name)]
}

function isGone(t: Test, what: string, instead: string, found: readonly string[]): void {
  t.strictSame(found, [], `"${what}" is used nowhere: the field says "${instead}"`)
}

t.test('files and exported names use the terms of the field', async (t) => {
  const support = ['test/support', 'test/service/support', 'test/fuzz/support', 'test/guards'].flatMap(
    (folder) => filesBelow(folder, /\.ts$/),
  )
  const names = [...sources, ...support].map((path) => [path, namesIn(path)] as const)
  for (const [name, term] of Object.entries(NAMES)) {
    const used = names.flatMap(([path, each]) => each.filter((one) => one === name).map(() => path))
    isGone(t, name, term, used)
  }
})

const PROSE = /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g

t.test('identifiers in sources and tests are free of metaphors', async (t) => {
  const tests = filesBelow('test', /\.ts$/).filter((path) => path !== 'test/vocabulary.ts')
  const texts = [...sources, ...tests].map((path) => [path, read(path).replace(PROSE, '')] as const)
  for (const [name, term] of Object.entries(IDENTIFIERS)) {
    const pattern = new RegExp(`\\b${name}s?\\b`, 'i')
    const used = texts.flatMap(([path, code]) => (pattern.test(code) ? [path] : []))
    isGone(t, name, term, used)
  }
})

/** Comments and texts of a source file; code has names, which the tests above look at. */
function proseOf(path: string): string {
  const text = read(path)
  if (!/\.(?:ts|mjs|js)$/.test(path)) return text
  const parts = text.matchAll(PROSE)
  return Array.from(parts, ([part]) => part.replace(/\s*\n\s*\*?\s*/g, ' ')).join('\n')
}

/** The names of tests, which a report of the suite shows. */
function testNames(path: string): string {
  const names = read(path).matchAll(/\bt\.test\(\s*(?:'([^']*)'|`([^`]*)`)/g)
  return Array.from(names, ([, plain = '', template = '']) => plain + template).join('\n')
}

t.test('comments, messages, documents and test names are plain English', async (t) => {
  const documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md']
  const tests = filesBelow('test', /\.ts$/).filter((path) => path !== 'test/vocabulary.ts')
  const texts = [
    ...[...sources, ...filesBelow('templates', /./), ...filesBelow('docs', /\.md$/), ...documents].map(
      (path) => [path, proseOf(path)] as const,
    ),
    ...tests.map((path) => [path, testNames(path)] as const),
  ]
  for (const [word, plain] of Object.entries(WORDS)) {
    const pattern = new RegExp(`\\b(?:${word})\\b`, 'gi')
    const used = texts.flatMap(([path, text]) => (text.match(pattern) ?? []).map(() => path))
    isGone(t, word, plain, used)
  }
})

t.test('a term of the field leads to the file that implements it', async (t) => {
  for (const [term, path] of Object.entries(TERMS)) {
    const file = sources.find((each) => each === `src/${path}`)
    t.ok(file !== undefined && read(file).toLowerCase().includes(term), `${term}: ${path}`)
  }
})

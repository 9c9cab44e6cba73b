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
  Bench: 'SettlementContext',
  Caller: 'RpcTransport',
  Claim: 'PaymentLease',
  complain: 'report',
  Counter: 'OfferContext',
  Daybook: 'UsageStore',
  Desk: 'LeaseContext',
  directory: 'registry',
  Dispatch: 'SettlementAttempt',
  draft: 'route-yaml',
  Entry: 'PaymentRecord',
  Errand: 'TransactionRequest',
  Face: 'Endpoint',
  Fate: 'OnchainStatus',
  Lookout: 'ChainReader',
  LostClaim: 'LeaseLostError',
  manual: 'docs-model',
  means: 'payment-config',
  mend: 'repair',
  Movement: 'ExpectedTransfer',
  OpenTill: 'SettleableNetwork',
  Order: 'PurchaseRequest',
  Outside: 'ServiceDeps',
  Pocket: 'ReceivingAccount',
  purse: 'gas-balance',
  Sighting: 'OnchainPayment',
  Standing: 'StatusModel',
  story: 'explain',
  Subject: 'CheckContext',
  Surroundings: 'CheckInputs',
  Tally: 'RouteCounters',
  Testimony: 'RouteClaims',
  Till: 'AcceptedNetwork',
  Tills: 'X402Networks',
  Turn: 'DistributedLock',
  Unanswered: 'RpcUnavailableError',
  wording: 'copy',
  Workshop: 'ExecutionDeps',
  World: 'Runtime',
}

/** Private names that are still in use, with how often at most: numbers only shrink, and an entry goes with the last use. */
const NAMES_LEFT: Readonly<Record<string, number>> = {
  Caller: 2,
  Claim: 1,
  wording: 1,
}

/** Words and phrases that do not occur in comments, messages, documents and the names of tests, with plain English for each. */
const WORDS: Readonly<Record<string, string>> = {
  'begins? a shop': 'creates a project',
  'complain\\w*': 'report',
  dearer: 'more expensive',
  'do not add up': 'fails its checksum',
  'errands?': 'request',
  'is too much': 'unexpected argument',
  'kept revision': 'still serving revision',
  'mend(s|ed|ing)?': 'repair',
  'purses?': 'balance',
  'say what to do': 'missing subcommand',
  'beside the': 'next to the',
  'stands (once|twice)': 'occurs once',
  whomever: 'anyone',
  'testimon(y|ies)': 'claims',
  'told (at|with|of)': 'reported at',
  'what there is': 'what exists',
  whoever: 'anyone who',
}

/** Words that are still in use, with how often at most. */
const WORDS_LEFT: Readonly<Record<string, number>> = {
  'complain\\w*': 2,
  'what there is': 1,
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
  gas: 'engine/chains/evm/fees.ts',
  health: 'engine/http/live.ts',
  idempotency: 'engine/purchase/request.ts',
  'json schema': 'engine/catalog/schema.ts',
  'json-rpc': 'engine/chains/evm/rpc.ts',
  lease: 'engine/ledger/lease.ts',
  'llms.txt': 'engine/documents/llms.ts',
  metrics: 'cli/metrics.ts',
  nonce: 'engine/chains/evm/nonce.ts',
  openapi: 'engine/documents/openapi.ts',
  preflight: 'engine/purchase/settlement-flow.ts',
  proxy: 'engine/http/proxy.ts',
  receipt: 'engine/ledger/payment-record.ts',
  reconcile: 'engine/protocols/reconcile/reconcile.ts',
  recovery: 'engine/purchase/recovery.ts',
  redelivery: 'engine/purchase/redelivery.ts',
  reload: 'engine/ratecard.ts',
  replay: 'engine/purchase/purchase.ts',
  'retry-after': 'engine/http/reply.ts',
  route: 'engine/http/router.ts',
  settle: 'engine/purchase/settlement-flow.ts',
  'sign-in': 'engine/protocols/x402/siwx.ts',
  signature: 'engine/protocols/x402/eip3009.ts',
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

/** Compares what was found with what is known to be left. */
function holds(
  t: Test,
  what: string,
  instead: string,
  found: readonly string[],
  most: number | undefined,
): void {
  const message = `"${what}" is used by ${found.join(', ') || 'nobody'}; the field says "${instead}"`
  t.ok(found.length <= (most ?? 0), message)
  t.ok(found.length > 0 || most === undefined, `"${what}" is gone: remove its exception`)
}

t.test('files and exported names use the terms of the field', async (t) => {
  const names = sources.map((path) => [path, namesIn(path)] as const)
  for (const [name, term] of Object.entries(NAMES)) {
    const used = names.flatMap(([path, each]) => each.filter((one) => one === name).map(() => path))
    holds(t, name, term, used, NAMES_LEFT[name])
  }
})

/** Comments and texts of a source file; code has names, which the test above looks at. */
function proseOf(path: string): string {
  const text = read(path)
  if (!/\.(?:ts|mjs|js)$/.test(path)) return text
  const parts = text.matchAll(/\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g)
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
    holds(t, word, plain, used, WORDS_LEFT[word])
  }
})

t.test('a term of the field leads to the file that implements it', async (t) => {
  for (const [term, path] of Object.entries(TERMS)) {
    const file = sources.find((each) => each === `src/${path}`)
    t.ok(file !== undefined && read(file).toLowerCase().includes(term), `${term}: ${path}`)
  }
})

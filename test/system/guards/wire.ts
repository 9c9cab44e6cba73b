import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'
import { redisAbsence, startRedis, type RunningRedis } from '../../support/redis.ts'
import { startServer } from '../../support/server.ts'
import { connect, TRANSPORTS, HTTP, mcpRequest, toolCall, type RequestSpec } from './support/buyer.ts'
import { bodyCases, commonCases, mppCases, nodeCases, storeCases, x402Cases } from './support/cases.ts'
import { payableEnv, startChains } from './support/chains.ts'
import { openHandlerController, type Fault, type Run } from './support/handler-controller.ts'
import {
  namesOf,
  openCaseRunner,
  warmUp,
  type CaseRunner,
  type Site,
  type CaseResult,
} from './support/case-runner.ts'
import { omitUnpaid, snapshotOf, toYaml } from './support/snapshot.ts'
import { openNodeProxy } from './support/node-proxy.ts'

/*
 * What every outcome of a request looks like on the wire, and what it costs: `golden/*.yaml`, rewritten by
 * UPDATE_GOLDEN=1. Nothing here knows how the service is built: requests go over HTTP and MCP, and charges are counted on the chains.
 */

const GOLDEN = fileURLToPath(new URL('golden/', import.meta.url))
const CATALOG = fileURLToPath(new URL('catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))

/** Work that takes longer than a simulation counts, so that the payment is simulated again after it. */
const BEYOND_SIMULATION_MS = 600

const chains = await startChains()
const wallets = new Map<string, { readonly key: Hex; readonly chain: 'base' | 'tempo' }>()
const controller = await openHandlerController(decide)
const absence = redisAbsence()
const redis = absence === undefined ? await startRedis() : undefined
t.teardown(async () => {
  await controller.close()
  await redis?.stop()
  await chains.close()
})

async function decide({ name, payer, run }: Run): Promise<Fault | undefined> {
  switch (name) {
    case 'thrown':
      return 'bug'
    case 'picky':
    case 'deep-picky':
      return 'parameter'
    case 'slow':
      return 'hang'
    case 'large':
      return 'large'
    case 'flaky':
      return run === 1 ? 'source' : undefined
    case 'deep-flaky':
      return run <= 2 ? 'source' : undefined
    case 'drained': {
      const wallet = wallets.get(payer)
      if (wallet === undefined) throw new Error(`${payer} is no buyer of this test`)
      await chains[wallet.chain].drain(wallet.key)
      await delay(BEYOND_SIMULATION_MS)
      return undefined
    }
    default:
      return undefined
  }
}

async function record(name: string, env: Readonly<Record<string, string>>, store: RunningRedis | undefined) {
  const [base, tempo] = await Promise.all([
    openNodeProxy(chains.base.rpcUrl),
    openNodeProxy(chains.tempo.rpcUrl),
  ])
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-guards-'))
  const signer = await chains.signer()
  const server = await startServer({
    args: ['--handlers', HANDLERS],
    dataDir,
    env: {
      CATALOG,
      ...payableEnv(chains, { base: base.url, tempo: tempo.url }, [signer], randomKey()),
      GUARD_CONTROLLER: controller.urlFor(name),
      ...env,
    },
  })
  const site: Site = { url: server.url, chains, nodes: { base, tempo } }
  const runners: CaseRunner[] = []
  const bodyRunners: CaseRunner[] = []
  try {
    await warmUp(site)
    for (const protocol of ['x402', 'mpp'] as const)
      for (const transport of TRANSPORTS) {
        const runner = await openCaseRunner(site, protocol, transport)
        runners.push({
          ...runner,
          wallet: async () => {
            const key = await runner.wallet()
            wallets.set(addressOf(key).toLowerCase(), { key, chain: protocol === 'x402' ? 'base' : 'tempo' })
            return key
          },
        })
      }
    for (const protocol of ['x402', 'mpp'] as const)
      bodyRunners.push(await openCaseRunner(site, protocol, HTTP))
    const [general] = await Promise.all([
      recordGeneral(site),
      ...bodyRunners.map(bodyCases),
      ...runners.map(async (runner) => {
        await commonCases(runner)
        await (runner.protocol === 'x402' ? x402Cases : mppCases)(runner)
      }),
    ])
    await nodeCases(runners)
    const recorded: Record<string, string> = { general: toYaml(general) }
    for (const { protocol, transport, results } of runners)
      recorded[`${protocol}-${transport.name}`] = toYaml(Object.fromEntries(results))
    for (const { protocol, results } of bodyRunners)
      recorded[`${protocol}-bodies`] = toYaml(Object.fromEntries(results))
    if (store !== undefined) {
      const before = runners.map(({ results }) => new Set(results.keys()))
      await storeCases(
        runners,
        () => store.kill(),
        () => store.restart(),
      )
      const added: Record<string, CaseResult> = {}
      for (const [place, { protocol, transport, results }] of runners.entries())
        for (const [title, each] of results)
          if (before[place]?.has(title) === false) added[`${title}: ${protocol}, ${transport.name}`] = each
      recorded['ledger-away'] = toYaml(added)
    }
    return { recorded, output: server.output() }
  } finally {
    for (const runner of [...runners, ...bodyRunners]) runner.close()
    await server.stop()
    await Promise.all([base.close(), tempo.close()])
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Requests that do not belong to one payment. */
async function recordGeneral(site: Site): Promise<Readonly<Record<string, unknown>>> {
  const html = { accept: 'text/html' }
  const requests: Readonly<Record<string, RequestSpec>> = {
    'a paid path': { path: '/paid/item?n=1' },
    'a path that is not known': { path: '/nothing' },
    'a paid path that is not known': { path: '/paid/nothing' },
    'a paid path with a slash at its end': { path: '/paid/item/' },
    'a paid path in capitals': { path: '/paid/ITEM' },
    'a payment that is not known': { path: '/payments/pay_0a1B2c3D4e5F6g7H8i9J0k' },
    'POST of a paid path': { method: 'POST', path: '/paid/item' },
    'DELETE of a paid path': { method: 'DELETE', path: '/paid/item' },
    'HEAD of a paid path': { method: 'HEAD', path: '/paid/item?n=1' },
    'OPTIONS of a paid path': { method: 'OPTIONS', path: '/paid/item?n=1' },
    'OPTIONS of a paid path, by a browser': {
      method: 'OPTIONS',
      path: '/paid/item?n=1',
      headers: {
        origin: 'https://app.example.com',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'payment-signature',
      },
    },
    'a paid path, by a browser': { path: '/paid/item?n=1', headers: html },
    'a parameter that is not known': { path: '/paid/item?n=1&m=2' },
    'a parameter twice': { path: '/paid/item?n=1&n=2' },
    'a free route': { path: '/free?n=1' },
    'a free route with a parameter that is not valid': { path: '/free?n=x' },
    'a free route with a payment': { path: '/free?n=2', headers: { 'payment-signature': '%%%' } },
    'HEAD of a free route': { method: 'HEAD', path: '/free?n=3' },
    'POST of a free route': { method: 'POST', path: '/free' },
    'a sample': { path: '/sample/item?n=1' },
    'a sample with a parameter that is not valid': { path: '/sample/item?n=0' },
    'HEAD of a sample': { method: 'HEAD', path: '/sample/item?n=2' },
    'POST of a sample': { method: 'POST', path: '/sample/item' },
    health: { path: '/health' },
    'tools/list': mcpRequest('tools/list', {}),
    'server/discover': mcpRequest('server/discover', {}),
    'a tool that is not known': toolCall('nothing', {}),
    'a free tool': toolCall('free', { n: 4 }),
    'a free tool with an argument that is not valid': toolCall('free', { n: 'x' }),
    'a paid tool with an argument that is not valid': toolCall('item', { n: 0, unknown: 'x' }),
    'a paid tool without arguments': toolCall('item', {}),
    'a method of MCP that is not known': mcpRequest('tools/nothing', {}),
    'MCP that is no JSON': {
      method: 'POST',
      path: '/mcp/tools',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: '{',
    },
    'GET of the endpoint of MCP': { path: '/mcp/tools', headers: { accept: 'application/json' } },
    'OPTIONS of the endpoint of MCP': { method: 'OPTIONS', path: '/mcp/tools' },
  }
  const names = namesOf(site.chains, '')
  const connection = connect(site.url)
  const answers: Record<string, unknown> = {}
  try {
    const unpaid = snapshotOf(await connection.send({ path: '/paid/item?n=1' }), names)
    for (const [title, request] of Object.entries(requests)) {
      const read = snapshotOf(await connection.send(request), names)
      answers[title] = title === 'a paid path' ? read : omitUnpaid(read, unpaid, ['status'])
    }
  } finally {
    connection.close()
  }
  return answers
}

function golden(name: string, actual: string): string {
  const file = join(GOLDEN, `${name}.yaml`)
  if (process.env['UPDATE_GOLDEN'] !== undefined) {
    mkdirSync(GOLDEN, { recursive: true })
    writeFileSync(file, actual)
  }
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

t.test('answers every outcome with its status, headers, body and charge, on either store', async (t) => {
  const [lmdb, shared] = await Promise.all([
    record('lmdb', {}, undefined),
    redis === undefined ? undefined : record('redis', { REDIS_URL: redis.url }, redis),
  ])
  for (const [name, actual] of Object.entries(lmdb.recorded)) t.equal(actual, golden(name, actual), name)
  if (shared === undefined) {
    t.comment(absence)
    return
  }
  const { 'ledger-away': away = '', ...rest } = shared.recorded
  for (const [name, actual] of Object.entries(rest)) t.equal(actual, lmdb.recorded[name], `${name}, in Redis`)
  t.equal(away, golden('ledger-away', away), 'ledger-away')
})

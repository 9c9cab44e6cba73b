import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { addressOf, randomKey, type Hex } from '../support/payment.ts'
import { redisAbsence, startRedis, type RunningRedis } from '../support/redis.ts'
import { startServer } from '../support/server.ts'
import { connect, FACES, HTTP, mcpQuestion, toolCall, type Question } from './support/buyer.ts'
import { bodyCases, commonCases, mppCases, nodeCases, storeCases, x402Cases } from './support/cases.ts'
import { payableEnv, startChains } from './support/chains.ts'
import { openDirector, type Fault, type Run } from './support/director.ts'
import { namesOf, openLane, warmUp, type Lane, type Site, type Told } from './support/lane.ts'
import { beside, readable, spell } from './support/record.ts'
import { openWay } from './support/way.ts'

/*
 * What every outcome of a request looks like on the wire, and what it costs: `golden/*.yaml`, rewritten by
 * UPDATE_GOLDEN=1. Nothing here knows how the service is built: it is asked over HTTP and MCP, and the chains are counted.
 */

const GOLDEN = fileURLToPath(new URL('golden/', import.meta.url))
const CATALOG = fileURLToPath(new URL('catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))

t.setTimeout(300_000)
const chains = await startChains()
const wallets = new Map<string, { readonly key: Hex; readonly chain: 'base' | 'tempo' }>()
const director = await openDirector(decide)
const absence = redisAbsence()
const redis = absence === undefined ? await startRedis() : undefined
t.teardown(async () => {
  await director.close()
  await redis?.stop()
  await chains.close()
})

async function decide({ name, payer, run }: Run): Promise<Fault | undefined> {
  switch (name) {
    case 'thrown':
      return 'bug'
    case 'picky':
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
      return undefined
    }
    default:
      return undefined
  }
}

async function record(store: string, env: Readonly<Record<string, string>>, power: RunningRedis | undefined) {
  const [base, tempo] = await Promise.all([openWay(chains.base.rpcUrl), openWay(chains.tempo.rpcUrl)])
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-guards-'))
  const signer = await chains.signer()
  const server = await startServer({
    args: ['--handlers', HANDLERS],
    dataDir,
    env: {
      CATALOG,
      ...payableEnv(chains, { base: base.url, tempo: tempo.url }, [signer], randomKey()),
      GUARD_DIRECTOR: director.urlFor(store),
      ...env,
    },
  })
  const site: Site = { url: server.url, chains, ways: { base, tempo } }
  const lanes: Lane[] = []
  const bodyLanes: Lane[] = []
  try {
    await warmUp(site)
    for (const protocol of ['x402', 'mpp'] as const)
      for (const face of FACES) {
        const lane = await openLane(site, protocol, face)
        lanes.push({
          ...lane,
          wallet: async () => {
            const key = await lane.wallet()
            wallets.set(addressOf(key).toLowerCase(), { key, chain: protocol === 'x402' ? 'base' : 'tempo' })
            return key
          },
        })
      }
    for (const protocol of ['x402', 'mpp'] as const) bodyLanes.push(await openLane(site, protocol, HTTP))
    const [general] = await Promise.all([
      askGenerally(site),
      ...bodyLanes.map(bodyCases),
      ...lanes.map(async (lane) => {
        await commonCases(lane)
        await (lane.protocol === 'x402' ? x402Cases : mppCases)(lane)
      }),
    ])
    await nodeCases(lanes)
    const told: Record<string, string> = { general: spell(general) }
    for (const { protocol, face, book } of lanes)
      told[`${protocol}-${face.name}`] = spell(Object.fromEntries(book))
    for (const { protocol, book } of bodyLanes) told[`${protocol}-bodies`] = spell(Object.fromEntries(book))
    if (power !== undefined) {
      const before = lanes.map(({ book }) => new Set(book.keys()))
      await storeCases(
        lanes,
        () => power.kill(),
        () => power.restart(),
      )
      const added: Record<string, Told> = {}
      for (const [place, { protocol, face, book }] of lanes.entries())
        for (const [title, each] of book)
          if (before[place]?.has(title) === false) added[`${title}: ${protocol}, ${face.name}`] = each
      told['ledger-away'] = spell(added)
    }
    return { told, output: server.output() }
  } finally {
    for (const lane of [...lanes, ...bodyLanes]) lane.close()
    await server.stop()
    await Promise.all([base.close(), tempo.close()])
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Whatever is not about one payment. */
async function askGenerally(site: Site): Promise<Readonly<Record<string, unknown>>> {
  const html = { accept: 'text/html' }
  const questions: Readonly<Record<string, Question>> = {
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
    'tools/list': mcpQuestion('tools/list', {}),
    'server/discover': mcpQuestion('server/discover', {}),
    'a tool that is not known': toolCall('nothing', {}),
    'a free tool': toolCall('free', { n: 4 }),
    'a free tool with an argument that is not valid': toolCall('free', { n: 'x' }),
    'a paid tool with an argument that is not valid': toolCall('item', { n: 0, unknown: 'x' }),
    'a paid tool without arguments': toolCall('item', {}),
    'a method of MCP that is not known': mcpQuestion('tools/nothing', {}),
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
  const told: Record<string, unknown> = {}
  try {
    const unpaid = readable(await connection.ask({ path: '/paid/item?n=1' }), names)
    for (const [title, question] of Object.entries(questions)) {
      const read = readable(await connection.ask(question), names)
      told[title] = title === 'a paid path' ? read : beside(read, unpaid, ['status'])
    }
  } finally {
    connection.close()
  }
  return told
}

function golden(name: string, told: string): string {
  const file = join(GOLDEN, `${name}.yaml`)
  if (process.env['UPDATE_GOLDEN'] !== undefined) {
    mkdirSync(GOLDEN, { recursive: true })
    writeFileSync(file, told)
  }
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

t.test('answers every outcome with its status, headers, body and charge, on either store', async (t) => {
  const [lmdb, shared] = await Promise.all([
    record('lmdb', {}, undefined),
    redis === undefined ? undefined : record('redis', { REDIS_URL: redis.url }, redis),
  ])
  for (const [name, told] of Object.entries(lmdb.told)) t.equal(told, golden(name, told), name)
  if (shared === undefined) {
    t.comment(absence)
    return
  }
  const { 'ledger-away': away = '', ...rest } = shared.told
  for (const [name, told] of Object.entries(rest)) t.equal(told, lmdb.told[name], `${name}, in Redis`)
  t.equal(away, golden('ledger-away', away), 'ledger-away')
})

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { startBase, onchainClient } from '../support/base-chain.ts'
import { replay } from './support/dockerfile.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import { startRedis } from '../support/redis.ts'
import { startServer } from '../support/server.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const IMAGE = mkdtempSync(join(tmpdir(), 'ratecard-image-'))
const APP = join(IMAGE, 'app')
const CATALOG = `
catalog: 1
service: { name: Tea, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/tea/leaf:
    price: 0.005
    summary: Whether there is tea
    sample: true
    example: { tea: none }
`
const HANDLERS = `
import { Failure } from 'ratecard'
export const handlers = { 'tea/leaf': async () => { throw new Failure('not_found', 'no tea is left') } }
`

t.teardown(() => spawnSync('rm', ['-rf', IMAGE]))

const { env, healthcheck, user } = replay(join(ROOT, 'deploy/Dockerfile'), ROOT, IMAGE)
const program = join(APP, 'dist/main.js')
const settler = randomKey()
const payee = addressOf(randomKey())
const chain = await startBase()
await chain.setGas(addressOf(settler), 10n ** 18n)
t.teardown(() => chain.stop())
const means = {
  NODE_ENV: 'production',
  PAY_TO: payee,
  SETTLER_PRIVATE_KEY: settler,
  RPC_URL_8453: chain.rpcUrl,
  BASE_URL: 'https://api.example.com',
}

t.test(
  'builds an image without development tools and sandbox chain, for a user other than root',
  async (t) => {
    t.same(env, { NODE_ENV: 'production', HOST: '0.0.0.0', PORT: '4021', DATA_DIR: join(IMAGE, 'data') })
    t.equal(user, 'node')
    const inside = (path: string): boolean => existsSync(join(APP, path))
    for (const path of ['test', 'node_modules/typescript', 'node_modules/tap', 'node_modules/@foundry-rs'])
      t.notOk(inside(path), path)
    for (const path of ['dist/main.js', 'catalog.yaml', 'node_modules/lmdb', 'node_modules/pg'])
      t.ok(inside(path), path)
    const size = execFileSync('du', ['-sm', APP], { encoding: 'utf8' }).split('\t')[0]
    t.comment(`the image adds ${size} MB to that of Node.js`)
  },
)

t.test(
  'sells from an instance of the image with the Redis of compose.yaml, and writes only data',
  async (t) => {
    const { services } = parse(readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8'), { merge: true }) as {
      readonly services: { readonly redis: { readonly command: string } }
    }
    const redis = await startRedis({ settings: services.redis.command.split(' ').slice(1) })
    t.teardown(() => redis.stop())
    const marker = join(IMAGE, 'marker')
    writeFileSync(marker, '')
    const server = await startServer({ program, cwd: APP, env: { ...means, REDIS_URL: redis.url } })
    t.teardown(() => server.stop())
    await server.said(/ledger: redis/i)
    const payer = randomKey()
    await chain.mint(addressOf(payer), 1_000_000n)
    const response = await stockFetch(payer)(
      `${server.url}/paid/util/workday?country=DE&date=2026-12-23&days=3`,
    )
    t.equal(response.status, 200)
    t.equal(await onchainClient(chain).charges(addressOf(payer)), 1)
    const [command = '', ...args] = healthcheck
    const asked = spawnSync(command, args, { env: { ...process.env, PORT: new URL(server.url).port } })
    t.equal(asked.status, 0, 'its health check')
    const tables = await fetch(`${server.url}/sample/util/platform-spec`)
    t.equal(tables.status, 200, 'the tables of the service are in the image')
    await server.stop()
    t.not(spawnSync(command, args, { env: { ...process.env, PORT: new URL(server.url).port } }).status, 0)
    t.equal(
      execFileSync('find', [APP, '-newer', marker], { encoding: 'utf8' }),
      '',
      'on a file system to read from',
    )
  },
)

t.test('recognises the errors of an operator’s handlers in the image', async (t) => {
  const tea = join(IMAGE, 'tea')
  mkdirSync(tea)
  writeFileSync(join(tea, 'catalog.yaml'), CATALOG)
  writeFileSync(join(tea, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(tea, 'index.js'), HANDLERS)
  const args = ['--catalog', join(tea, 'catalog.yaml'), '--handlers', tea]
  const server = await startServer({ program, cwd: APP, args, env: means })
  t.teardown(() => server.stop())
  const response = await fetch(`${server.url}/sample/tea/leaf`)
  t.equal(response.status, 404)
  t.match(await response.json(), { code: 'not_found', detail: 'no tea is left' })
})

import t from 'tap'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FORMAT } from '../../../src/engine/ledger/record-codec.ts'
import { writeShop } from '../../support/catalogs.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'
import { runProgram, startServer } from '../../support/server.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const FREE = '  /greet: { price: free, handler: greet, summary: X }\n'

  t.test('stores payments in the configured Redis, and keeps its password out of all output', async (t) => {
    const redis = await startRedis({ password: 'tricky-word' })
    t.teardown(() => redis.stop())
    const shop = writeShop(t, FREE)
    const dataDir = join(shop.directory, 'data')
    const server = await startServer({
      args: ['--catalog', shop.catalog, '--handlers', shop.handlers],
      env: { HOST: '127.0.0.1', REDIS_URL: `${redis.url}/3` },
      dataDir,
    })
    t.teardown(() => server.stop())
    t.match(server.output(), new RegExp(`^ledger: redis at 127\\.0\\.0\\.1:${redis.port}$`, 'm'))
    t.notMatch(server.output(), 'tricky-word')
    t.notOk(existsSync(join(dataDir, 'ledger')), 'and none stays on this machine')
    await redis.command('SELECT', 3)
    t.equal(await redis.command('GET', '{ratecard}:format'), String(FORMAT))
    t.equal(await server.stop(), 0)
  })

  t.test('refuses to start on a Redis that may lose payments, unless the operator accepts it', async (t) => {
    const redis = await startRedis({ appendonly: 'no', password: 'tricky-word' })
    t.teardown(() => redis.stop())
    const shop = writeShop(t, FREE)
    const env = { HOST: '127.0.0.1', REDIS_URL: redis.url }
    const args = ['--catalog', shop.catalog, '--handlers', shop.handlers]
    const serve = ['serve', '--port', '0', '--data-dir', shop.directory, ...args]
    const { code, stdout, stderr } = await runProgram(serve, env)
    t.equal(code, 1)
    t.equal(stdout, '')
    const { level, event, message }: Record<string, unknown> = JSON.parse(stderr)
    t.match({ level, event }, { level: 'error', event: 'start' })
    t.match(message, /^ratecard serve: Redis at \S+ is not safe for a ledger: .*CONFIG SET appendonly yes/)
    t.notMatch(stderr, /tricky-word|\n\s+at /)
    const server = await startServer({ args, env: { ...env, LEDGER_UNSAFE: '1' } })
    t.teardown(() => server.stop())
    t.match(server.output(), /^ledger: redis at /m)
  })

  t.test('keeps sandbox payments on this machine, whatever Redis is configured', async (t) => {
    const shop = writeShop(t, FREE)
    const server = await startServer({
      args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
      env: { REDIS_URL: 'redis://127.0.0.1:1' },
    })
    t.teardown(() => server.stop())
    t.match(server.output(), /^ledger: lmdb$/m)
  })
}

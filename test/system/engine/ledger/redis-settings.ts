import t, { type Test } from 'tap'
import { mock } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { FORMAT } from '../../../../src/engine/ledger/record-codec.ts'
import { openRedisLedger } from '../../../../src/engine/ledger/redis/redis-ledger.ts'
import type { RedisLedgerSettings } from '../../../../src/engine/ledger/redis/redis-store.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'
import { redisAbsence, startRedis, type RedisOptions, type RunningRedis } from '../../../support/redis.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else testSettings()

/** What has to be right about a Redis before anybody’s payment is entrusted to it. */
function testSettings(): void {
  t.test('refuses a Redis that may lose payments, and says how to configure it', async (t) => {
    const lost = 'appendonly is no: a restart loses payments; redis-cli CONFIG SET appendonly yes'
    const dropped = (policy: string): string =>
      `maxmemory-policy is ${policy}: payments are dropped when memory runs out; redis-cli CONFIG SET maxmemory-policy noeviction`
    for (const [options, problems] of [
      [{ appendonly: 'no' }, lost],
      [{ policy: 'allkeys-lru' }, dropped('allkeys-lru')],
      [{ appendonly: 'no', policy: 'volatile-ttl' }, `${lost}, ${dropped('volatile-ttl')}`],
    ] as const) {
      const redis = await newRedis(t, options)
      t.equal(
        await refusal(redis.url),
        `Redis at 127.0.0.1:${redis.port} is not safe for a ledger: ${problems}, then CONFIG REWRITE`,
      )
      t.equal(await redis.command('DBSIZE'), 0, 'nothing was written')
      await works(t, redis.url, 'unchecked')
    }
  })

  t.test('accepts a Redis once it is configured as the message says', async (t) => {
    const redis = await newRedis(t, { appendonly: 'no', policy: 'allkeys-lfu' })
    const message = await refusal(redis.url)
    for (const [, command = ''] of message.matchAll(/redis-cli ([^,]+)/g)) {
      const [name = '', ...words] = command.split(' ')
      await redis.command(name, ...words)
    }
    await works(t, redis.url, 'checked')
  })

  t.test('accepts a Redis with hidden settings on the operator’s confirmation only', async (t) => {
    const redis = await newRedis(t)
    await redis.command('ACL', 'SETUSER', 'shop', 'on', '>secret', '~{ratecard}:*', '+@all', '-@dangerous')
    const renamed = await newRedis(t, { settings: ['--rename-command', 'CONFIG', ''] })
    const said = [t.capture(console, 'warn'), t.capture(console, 'error')]
    for (const url of [redis.url.replace('//', '//shop:secret@'), renamed.url]) {
      t.match(
        await refusal(url),
        / does not let its settings be read \(CONFIG GET\): see to it that it has appendonly yes and maxmemory-policy noeviction, then set LEDGER_UNSAFE=1$/,
      )
      await works(t, url, 'unchecked')
    }
    t.strictSame(
      said.flatMap((each) => each()),
      [],
      'the library tells the log nothing',
    )
  })

  t.test('works with exactly the documented rights of a Redis user', async (t) => {
    const redis = await newRedis(t)
    const rights = ['+@read', '+@write', '+@scripting', '+@connection', '+time']
    await redis.command('ACL', 'SETUSER', 'shop', 'on', '>secret', '~{ratecard}:*', ...rights)
    const url = redis.url.replace('//', '//shop:secret@')
    await works(t, url, 'unchecked')
    await redis.command('ACL', 'SETUSER', 'shop', '-@scripting')
    t.match(
      await refusal(url, 'unchecked'),
      /its user may not do what is needed; allow @read, @write, @scripting, @connection and time for ~\{ratecard\}:\* \(NOPERM\)$/,
    )
  })

  t.test('refuses wrong credentials, and keeps them out of the message', async (t) => {
    const redis = await newRedis(t, { password: 'right horse' })
    await works(t, redis.url.replace('right horse', 'right%20horse'), 'checked')
    const place = `127.0.0.1:${redis.port}`
    for (const [credentials, reason] of [
      [':tricky-word@', 'it does not accept the credentials in REDIS_URL (WRONGPASS)'],
      ['tricky-name:tricky-word@', 'it does not accept the credentials in REDIS_URL (WRONGPASS)'],
      ['', 'it asks for credentials; put them into REDIS_URL (NOAUTH)'],
    ] as const) {
      const fault = await faultOf(`redis://${credentials}${place}`)
      t.equal(fault.message, `the ledger in Redis at ${place} has refused: ${reason}`)
      t.notMatch(inspect(fault, { depth: 9, showHidden: true }), /tricky/)
    }
    t.equal(
      await refusal(`redis://:100%@${place}`),
      'the credentials in REDIS_URL have a % that begins no escape: write %25',
    )
  })

  t.test('reports a missing database as an error', async (t) => {
    const redis = await newRedis(t)
    t.match(
      await refusal(`${redis.url}/500`),
      /has refused: it does not have the database that REDIS_URL names/,
    )
    t.equal(await refusal(`${redis.url}/shop`), 'the path of REDIS_URL may be the number of a database only')
    await works(
      t,
      `${redis.url}/499?db=3&enableOfflineQueue=true&autoResendUnfulfilledCommands=true`,
      'checked',
    )
    t.equal(await redis.command('DBSIZE'), 0)
    await redis.command('SELECT', 499)
    t.equal(await redis.command('EXISTS', '{ratecard}:format'), 1, 'the number counts, and nothing else')
  })

  t.test('refuses a ledger of another format and leaves it as it is', async (t) => {
    const redis = await newRedis(t)
    const place = `the ledger in Redis at 127.0.0.1:${redis.port}`
    const works = `this version works with format ${FORMAT}`
    for (const [format, sentence] of [
      ['2', `${place} has format 2, ${works}: start the version that has written it`],
      [
        String(FORMAT + 1),
        `${place} has format ${FORMAT + 1}, ${works}: start the version that has written it`,
      ],
      ['what?', `${place} has an unknown format, ${works}: start the version`],
    ] as const) {
      await redis.command('SET', '{ratecard}:format', format)
      t.match(await refusal(redis.url), sentence)
      t.equal(await redis.command('GET', '{ratecard}:format'), format)
      t.equal(await redis.command('DBSIZE'), 1)
    }
  })

  t.test(
    'refuses new payments once a setting has become unsafe, and accepts them when it is right',
    async (t) => {
      const redis = await newRedis(t)
      let time = Math.round(performance.now())
      const clock = mock.method(performance, 'now', () => time)
      t.teardown(() => clock.mock.restore())
      const ledger = await open(t, redis.url)
      const record = makeRecord('x402:one')
      await ledger.insert(record)
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
      time += 60_000
      const unsafe = {
        name: 'LedgerError',
        message: /is not safe for a ledger: maxmemory-policy is allkeys-lru: payments are dropped/,
      }
      await t.rejects(ledger.check(), unsafe)
      await t.rejects(ledger.insert(makeRecord('x402:two')), unsafe)
      await t.rejects(ledger.listExpiring('a', 1), unsafe)
      t.equal(await ledger.replace(record, nextRecord(record)), true, 'what is under way goes on')
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      time += 60_000
      t.equal(await ledger.insert(makeRecord('x402:two')), undefined)

      await redis.kill()
      time += 60_000
      await t.rejects(ledger.check(), { message: /cannot be reached|has not answered/ })
      await redis.restart()
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
      await t.rejects(ledger.check(), unsafe, 'a check without an answer is made again')
    },
  )

  t.test('stores a payment on the configured number of replicas, or reports that it failed', async (t) => {
    const [redis, replica] = [await newRedis(t), await newRedis(t)]
    const settings = { url: redis.url, settings: 'checked', replicas: 1 } as const
    const ledger = await openRedisLedger(settings)
    t.teardown(() => ledger.close())
    await t.rejects(ledger.insert(makeRecord('x402:alone')), {
      name: 'LedgerError',
      message: /has stored a change on 0 of 1 replicas: a failover may lose it$/,
    })
    await replica.command('REPLICAOF', '127.0.0.1', redis.port)
    while (!/master_link_status:up/.test(String(await replica.command('INFO', 'replication'))))
      await delay(50)
    const record = makeRecord('x402:one')
    t.equal(await ledger.insert(record), undefined)
    await redis.kill()
    await replica.command('REPLICAOF', 'NO', 'ONE')
    const after = await open(t, replica.url)
    t.strictSame(await after.get('x402:one'), record, 'a failover has it')
  })

  t.test('measures leases by the clock of Redis, whatever the clock of the process says', async (t) => {
    const redis = await newRedis(t)
    const ledger = await open(t, redis.url)
    const [seconds] = (await redis.command('TIME')) as [string]
    t.ok(Math.abs(ledger.now() - Number(seconds) * 1000) < 5_000)
    const wrong = Date.now() + 3_600_000
    await ledger.lease('signer', 'ahead', wrong, wrong + 200)
    t.equal(await ledger.lease('signer', 'me', Date.now(), Date.now() + 200), undefined)
    await delay(250)
    t.equal((await ledger.lease('signer', 'me', Date.now(), Date.now() + 60_000))?.fencingToken, 2)
    t.equal(await ledger.lease('signer', 'ahead', wrong, wrong + 200), undefined, 'it is alive')
    await redis.command('HSET', '{ratecard}:lease:signer', 'end', Date.now() + 3_600_000, 'length', 1)
    t.equal(await ledger.lease('signer', 'ahead', wrong, wrong + 200), undefined)
    await delay(10)
    t.equal(
      (await ledger.lease('signer', 'ahead', wrong, wrong + 200))?.fencingToken,
      3,
      'Redis had been ahead',
    )
  })

  t.test('two processes that open an empty Redis at the same time agree', async (t) => {
    const redis = await newRedis(t)
    const ledgers = await Promise.all([1, 2, 3].map(() => open(t, redis.url)))
    t.equal(await redis.command('GET', '{ratecard}:format'), '7')
    t.equal(await ledgers[0]?.insert(makeRecord('x402:one')), undefined)
    t.not(await ledgers[1]?.get('x402:one'), undefined)
  })
}

async function newRedis(t: Test, options: RedisOptions = {}): Promise<RunningRedis> {
  const redis = await startRedis(options)
  t.teardown(() => redis.stop())
  return redis
}

async function open(
  t: Test,
  url: string,
  settings: RedisLedgerSettings['settings'] = 'checked',
): Promise<Ledger> {
  const ledger = await openRedisLedger({ url, settings, replicas: 0 })
  t.teardown(() => ledger.close())
  return ledger
}

async function works(t: Test, url: string, settings: RedisLedgerSettings['settings']): Promise<void> {
  const ledger = await open(t, url, settings)
  const record = makeRecord('x402:one')
  t.equal(await ledger.insert(record), undefined)
  t.strictSame(await ledger.get('x402:one'), record)
  t.strictSame(await ledger.due('cleanup', record.due ?? 0, 1), [record])
  await ledger.addExpiring('a name', 'a fact', 10)
  t.strictSame(await ledger.listExpiring('a name', 10), [])
  t.match(await ledger.lease('a thing', 'somebody', 1, 2), { fencingToken: 1 })
}

async function faultOf(url: string, settings: RedisLedgerSettings['settings'] = 'checked'): Promise<Error> {
  const fault: unknown = await openRedisLedger({ url, settings, replicas: 0 }).catch(
    (caught: unknown) => caught,
  )
  if (fault instanceof Error && fault.name === 'LedgerError') return fault
  throw new Error('it was not refused')
}

async function refusal(url: string, settings?: RedisLedgerSettings['settings']): Promise<string> {
  return (await faultOf(url, settings)).message
}

import t, { type Test } from 'tap'
import { FORMAT } from '../../../../src/engine/ledger/record-codec.ts'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { inspect } from 'node:util'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { LedgerLostError } from '../../../../src/engine/base/errors.ts'
import { openRedisLedger } from '../../../../src/engine/ledger/redis/redis-ledger.ts'
import { asStored, makeRecord, nextRecord } from '../../../support/payment-records.ts'
import { redisAbsence, startRedis, type RunningRedis } from '../../../support/redis.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else testConnection()

/** What becomes of payments when Redis goes away, and what is said about it. */
function testConnection(): void {
  t.test('keeps every payment when Redis is killed and started again', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    await redis.kill()
    await redis.restart()
    t.strictSame(await ledger.get('x402:one'), record, 'the same ledger goes on with it')
    const next = nextRecord(record, { state: 'fulfilled', due: 7 })
    t.equal(await ledger.replace(record, next), true)
    await redis.kill()
    await redis.restart()
    t.strictSame(await ledger.due('money', 7, 10), [next])
    t.strictSame(await ledger.insert(makeRecord('x402:one')), next)
  })

  t.test('fails every call soon while Redis is away', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const said = [t.capture(console, 'error'), t.capture(console, 'warn'), t.capture(console, 'log')]
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    await redis.kill()
    const message = `the ledger in Redis at 127.0.0.1:${redis.port} cannot be reached (ECONNREFUSED)`
    await t.rejects(ledger.get('x402:one'), { name: 'LedgerError', message })
    for (let round = 0; round < 3; round += 1)
      for (const call of callsOf(ledger)) await t.rejects(call(), { name: 'LedgerError', message })
    await redis.restart()
    await comesBack(ledger)
    t.strictSame(await ledger.get('x402:one'), record)
    t.equal(await ledger.get('x402:two'), undefined, 'nothing of what had failed is done later')
    await redis.kill()
    await t.rejects(ledger.get('x402:one'), { message })
    await ledger.close()
    t.strictSame(
      said.flatMap((each) => each()),
      [],
      'the log has not been flooded',
    )
  })

  t.test('lets callers wait while Redis starts again', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    await redis.kill()
    const found = Promise.all([
      ledger.get('x402:one'),
      ledger.find(record.id),
      ledger.due('cleanup', record.due ?? 0, 1),
    ])
    await redis.restart()
    t.strictSame(await found, [record, record, [record]])
    t.equal(await ledger.replace(record, nextRecord(record)), true)
  })

  t.test('gives up a silent Redis, and reports the last call as unknown', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    const next = nextRecord(record, { state: 'fulfilled' })
    const place = `the ledger in Redis at 127.0.0.1:${redis.port}`
    redis.freeze()
    const [changed, read] = await Promise.allSettled([ledger.replace(record, next), ledger.get('x402:one')])
    const unknown = `${place} has not answered: whether the change was stored cannot be known`
    t.match(changed, { status: 'rejected', reason: { name: 'LedgerError', message: unknown } })
    t.match(read, {
      status: 'rejected',
      reason: { name: 'LedgerError', message: `${place} cannot be reached` },
    })
    await t.rejects(ledger.insert(makeRecord('x402:two')), { name: 'LedgerError' })
    redis.thaw()
    await comesBack(ledger)
    t.strictSame(await ledger.get('x402:one'), next, 'this time it was carried out when Redis woke up')
    t.equal(await ledger.replace(record, next), false)
    t.equal(await ledger.get('x402:two'), undefined, 'what came too late was never sent')
  })

  t.test('gives up a Redis that pauses, and reports the last call as unknown', async (t) => {
    const { redis, ledger } = await openFixture(t)
    await redis.command('CLIENT', 'PAUSE', 5_000, 'ALL')
    await t.rejects(ledger.insert(makeRecord('x402:one')), { message: / cannot be known$/ })
    await comesBack(ledger)
    t.equal(await ledger.get('x402:one'), undefined, 'this time it was not carried out')
  })

  t.test('recognises its own payment that was accepted as the connection broke', async (t) => {
    const { redis } = await openFixture(t)
    const line = await openLine(t, redis.port)
    const ledger = await open(t, `redis://127.0.0.1:${line.port}`)
    const record = makeRecord('x402:one')
    line.cutAnswers(1)
    await t.rejects(ledger.insert(record), { message: / cannot be known$/ })
    t.strictSame(await ledger.get('x402:one'), record, 'it was stored')
    t.equal(line.sent().split("'SETNX', identity").length - 1, 1)
    t.equal(line.sent().split(record.authorizationHash).length - 1, 1, 'and sent once')
    const next = nextRecord(record, { state: 'fulfilled' })
    line.cutAnswers(1)
    await t.rejects(ledger.replace(record, next), { message: / cannot be known$/ })
    t.strictSame(await ledger.get('x402:one'), next)
    t.equal(line.sent().split(record.authorizationHash).length - 1, 2)
    line.cutAnswers(2)
    await t.rejects(ledger.get('x402:one'), { message: / has not answered$/ })
  })

  t.test('repeats idempotent calls when the connection breaks', async (t) => {
    const { redis } = await openFixture(t)
    const line = await openLine(t, redis.port)
    const ledger = await open(t, `redis://127.0.0.1:${line.port}`)
    const each = async <T>(call: () => Promise<T>): Promise<T> => {
      line.cutAnswers(1)
      return call()
    }
    const lease = await each(() => ledger.lease('signer', 'me', 1_000, 2_000))
    t.strictSame(lease, { name: 'signer', owner: 'me', fencingToken: 1, leaseState: undefined })
    if (lease !== undefined) await each(() => ledger.release(lease, { value: 7, at: 1_000 }))
    const next = await each(() => ledger.lease('signer', 'other', 1_000, 2_000))
    t.strictSame(next, {
      name: 'signer',
      owner: 'other',
      fencingToken: 2,
      leaseState: { value: 7, at: 1_000 },
    })
    await each(() => ledger.addExpiring('name', 'fact', 1_000))
    t.strictSame(await each(() => ledger.listExpiring('name', 999)), ['fact'])
    t.equal(line.sent().split('hello').length - 1, 6, 'each time on a new connection')
  })

  t.test('reports why Redis refuses a command, in its own words', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    const refused = async (word: string): Promise<void> => {
      const fault: unknown = await ledger
        .replace(record, nextRecord(record))
        .catch((caught: unknown) => caught)
      t.match(fault, { name: 'LedgerError', message: new RegExp(` has refused: .* \\(${word}\\)$`) })
      t.notMatch(
        inspect(fault, { depth: 9, showHidden: true }),
        record.authorizationHash,
        'and nothing of the payment',
      )
      t.strictSame(await ledger.get('x402:one'), record)
    }
    await redis.command('CONFIG', 'SET', 'maxmemory', 1)
    await refused('OOM')
    await redis.command('CONFIG', 'SET', 'maxmemory', 0)
    await redis.command('SET', '{ratecard}:format', FORMAT + 1)
    await refused('FORMAT')
    await redis.command('SET', '{ratecard}:format', FORMAT)
    await redis.command('RENAME', '{ratecard}:dues:cleanup', '{ratecard}:kept')
    await redis.command('SET', '{ratecard}:dues:cleanup', 'no list')
    await t.rejects(ledger.due('cleanup', 1, 1), {
      message: / has refused: it cannot do what was asked \(WRONGTYPE\)$/,
    })
    await redis.command('RENAME', '{ratecard}:kept', '{ratecard}:dues:cleanup')
    t.equal(await ledger.replace(record, nextRecord(record)), true, 'it goes on once that is repaired')
  })

  t.test('takes no payment after the store was emptied, until an operator has reopened it', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const neighbour = await open(t, redis.url)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    const place = `the ledger in Redis at 127.0.0.1:${redis.port} has lost its data`
    const closed = async (reason: string): Promise<void> => {
      for (const each of [ledger, neighbour])
        for (const call of writesOf(each)) {
          const fault: unknown = await call().catch((caught: unknown) => caught)
          t.ok(fault instanceof LedgerLostError)
          t.match(fault, { message: new RegExp(`^${place}: ${reason}: .*"ratecard ledger reopen"$`) })
        }
    }
    const stored = String(await redis.command('GET', '{ratecard}:identity'))
    await redis.command('FLUSHALL')
    await closed('it was emptied')
    t.equal(await redis.command('DBSIZE'), 0, 'nothing was written into it')
    const restarted = await open(t, redis.url)
    await restarted.insert(makeRecord('x402:new'))
    await closed('it was emptied')
    await redis.command('SET', '{ratecard}:identity', stored)
    await closed('it was emptied')
    const operator = await open(t, redis.url)
    await operator.reopen()
    for (const each of [ledger, neighbour, restarted]) {
      await each.check()
      t.equal(await each.get(record.key), undefined)
    }
    t.equal(await ledger.replace(record, nextRecord(record)), false, 'a lost payment is not there')
    t.equal(await neighbour.insert(record), undefined)
    t.strictSame(await ledger.insert(record), record)
  })

  t.test('takes no payment after another store has taken the place of its own', async (t) => {
    const { redis, ledger } = await openFixture(t)
    await redis.command('FLUSHALL')
    const other = await open(t, redis.url)
    const message = / has lost its data: another one has taken its place: /
    for (const call of writesOf(ledger)) await t.rejects(call(), { message })
    await other.reopen()
    for (const each of [ledger, other]) await each.check()
  })

  t.test('leaves a Redis that has become a replica, and returns when it is the master', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    await redis.command('REPLICAOF', '127.0.0.1', 1)
    const connections = Number(
      /total_connections_received:(\d+)/.exec(String(await redis.command('INFO')))?.[1],
    )
    const replica = / has refused: it is a replica; REDIS_URL has to name the primary \(READONLY\)$/
    await t.rejects(ledger.replace(record, nextRecord(record)), { message: replica })
    t.strictSame(await ledger.get('x402:one'), record)
    const after = /total_connections_received:(\d+)/.exec(String(await redis.command('INFO')))?.[1]
    t.ok(Number(after) > connections, 'the name is looked up anew: it may lead elsewhere')
    const fault: unknown = await openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 }).catch(
      (caught: unknown) => caught,
    )
    t.match(fault, { message: replica })
    await redis.command('REPLICAOF', 'NO', 'ONE')
    t.equal(await ledger.replace(record, nextRecord(record)), true)
  })

  t.test('names an address that is unreachable or another program’s', async (t) => {
    const silent = await listen(t, () => undefined)
    const other = await listen(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const { redis } = await openFixture(t)
    await redis.kill()
    for (const [place, reason] of [
      [`127.0.0.1:${silent}`, ''],
      [`127.0.0.1:${other}`, ''],
      [`127.0.0.1:${redis.port}`, ' (ECONNREFUSED)'],
      [`[::1]:${redis.port}`, /^ \((?:ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT)\)$/],
      ['no-such-host.invalid', /^ \((?:ENOTFOUND|EAI_AGAIN)\)$/],
    ] as const) {
      const fault: unknown = await openRedisLedger({
        url: `redis://${place}`,
        settings: 'checked',
        replicas: 0,
      }).catch((caught: unknown) => caught)
      t.match(fault, { name: 'LedgerError' })
      const [, shown = '', why = ''] =
        /^the ledger in Redis at (\S+) cannot be reached(.*)$/.exec(
          fault instanceof Error ? fault.message : '',
        ) ?? []
      t.ok(shown.startsWith(place), shown)
      t.match(why, reason)
    }
  })

  t.test('keeps a rediss connection encrypted, and checks the name of its host', async (t) => {
    const hello: Buffer[] = []
    const port = await listen(t, (socket) =>
      socket.once('data', (chunk) => hello.push(chunk) && socket.destroy()),
    )
    for (const host of ['localhost', '127.0.0.1'])
      await t.rejects(
        openRedisLedger({ url: `REDISS://:secret@${host}:${port}`, settings: 'checked', replicas: 0 }),
        {
          name: 'LedgerError',
        },
      )
    t.strictSame(
      hello.map((chunk) => chunk[0]),
      [0x16, 0x16],
      'a TLS handshake',
    )
    t.strictSame(
      hello.map((chunk) => chunk.includes('localhost')),
      [true, false],
    )
    t.notOk(hello.some((chunk) => chunk.includes('secret')))
  })

  t.test('refuses calls after it was closed, with Redis present or away', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const other = await open(t, redis.url)
    await ledger.close()
    const message = `the ledger in Redis at 127.0.0.1:${redis.port} is closed`
    for (const call of callsOf(ledger)) await t.rejects(call(), { name: 'LedgerError', message })
    await redis.kill()
    await other.close()
    await t.rejects(other.get('x402:one'), { message })
  })

  t.test('closes though Redis is silent', async (t) => {
    const { redis, ledger } = await openFixture(t)
    redis.freeze()
    await ledger.close()
    redis.thaw()
  })

  t.test('removes expired facts from the store', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const before = await redis.command('DBSIZE')
    for (let number = 0; number < 150; number += 1) {
      await ledger.addExpiring(`name ${number}`, 'one', 1_000)
      await ledger.addExpiring(`name ${number}`, 'two', 1_000 + number)
    }
    t.strictSame(await ledger.listExpiring('name 140', 1_139), ['two'])
    t.equal(await redis.command('ZCARD', '{ratecard}:facts:name 140'), 1)
    for (let round = 0; round < 2; round += 1) await ledger.listExpiring('another', 2_000)
    t.equal(await redis.command('DBSIZE'), before)
  })

  t.test('keeps all keys of the ledger in one slot of a cluster', async (t) => {
    const { redis, ledger } = await openFixture(t)
    const record = asStored(makeRecord('x402:{one}'))
    await ledger.insert(record)
    await ledger.addExpiring('{a} name', 'a fact', 10)
    await ledger.lease('{a} thing', 'somebody', 1, 2)
    const keys = await redis.command('KEYS', '*')
    if (!Array.isArray(keys)) throw new Error('there are no keys')
    t.equal(keys.length, 11)
    for (const key of keys.map(String)) t.ok(key.startsWith('{ratecard}:'), key)
  })
}

async function openFixture(t: Test): Promise<{ redis: RunningRedis; ledger: Ledger }> {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  return { redis, ledger: await open(t, redis.url) }
}

async function open(t: Test, url: string): Promise<Ledger> {
  const ledger = await openRedisLedger({ url, settings: 'checked', replicas: 0 })
  t.teardown(() => ledger.close())
  return ledger
}

/** Everything a ledger can be asked for. */
function callsOf(ledger: Ledger): (() => Promise<unknown>)[] {
  const [one, two] = [makeRecord('x402:one'), makeRecord('x402:two')]
  return [
    () => ledger.get('x402:one'),
    () => ledger.find(one.id),
    () => ledger.insert(two),
    () => ledger.replace(one, nextRecord(one)),
    () => ledger.remove(one),
    () => ledger.records()[Symbol.asyncIterator]().next(),
    () => ledger.due('money', 1, 1),
    () => ledger.undelivered(one.buyerKey, 0, 1),
    () => ledger.addExpiring('name', 'fact', 1),
    () => ledger.listExpiring('name', 1),
    () => ledger.lease('thing', 'owner', 1, 2),
    () =>
      ledger.release({ name: 'thing', owner: 'owner', fencingToken: 1, leaseState: undefined }, undefined),
    () => ledger.reopen(),
  ]
}

/** What must not happen in a store that has lost data. */
function writesOf(ledger: Ledger): (() => Promise<unknown>)[] {
  const [one, two] = [makeRecord('x402:one'), makeRecord('x402:two')]
  return [
    () => ledger.check(),
    () => ledger.insert(two),
    () => ledger.replace(one, nextRecord(one)),
    () => ledger.addExpiring('name', 'fact', 1),
    () => ledger.listExpiring('name', 1),
    () => ledger.lease('thing', 'owner', 1, 2),
  ]
}

/** Resolves when the ledger works again. */
async function comesBack(ledger: Ledger): Promise<void> {
  while (
    !(await ledger.get('nothing').then(
      () => true,
      () => false,
    ))
  )
    await new Promise((resolve) => setTimeout(resolve, 50))
}

/** A line to Redis that can be cut. */
interface Line {
  readonly port: number
  /** The next answers of Redis are lost, each with its connection. */
  cutAnswers(count: number): void
  /** What was sent to Redis so far. */
  sent(): string
}

async function openLine(t: Test, redisPort: number): Promise<Line> {
  let cuts = 0
  let sent = ''
  const port = await listen(t, (socket) => {
    const redis = connect(redisPort, '127.0.0.1')
    // Greetings are answered.
    let asked = false
    const cut = (): void => {
      socket.destroy()
      redis.destroy()
    }
    socket.on('data', (chunk) => {
      sent += chunk.toString('latin1')
      asked ||= chunk.includes('{ratecard}')
      redis.write(chunk)
    })
    redis.on('data', (chunk) => {
      if (cuts === 0 || !asked) return void socket.write(chunk)
      cuts -= 1
      cut()
    })
    for (const end of [socket, redis]) end.on('close', cut).on('error', cut)
  })
  return { port, sent: () => sent, cutAnswers: (count) => void (cuts = count) }
}

async function listen(t: Test, serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    serve(socket)
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

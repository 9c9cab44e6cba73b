import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import {
  connect,
  TRANSPORTS,
  HTTP,
  messageOf,
  payByMpp,
  payByX402,
  type Offers,
  type Payment,
} from '../../guards/support/buyer.ts'
import { payableEnv, startChains } from '../../guards/support/chains.ts'
import { addressOf, randomKey, stockFetch, type Hex } from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { runProgram, startServer, type RunningServer } from '../../../support/server.ts'
import { startStreamUpstream, type Run } from '../../../support/upstream.ts'
import { stockPayer } from '../../../support/tempo.ts'
import { until } from '../../../support/until.ts'

const FIXTURE = fileURLToPath(new URL('../../../fixtures/streams', import.meta.url))

const directory = mkdtempSync(join(tmpdir(), 'ratecard-streams-'))
const absence = redisAbsence()
const [chains, upstream, redis] = await Promise.all([
  startChains(),
  startStreamUpstream(),
  absence === undefined ? startRedis() : undefined,
])
const CATALOG = join(directory, 'catalog.yaml')
const text = readFileSync(join(FIXTURE, 'catalog.yaml'), 'utf8').replaceAll('UPSTREAM', upstream.url)
writeFileSync(CATALOG, text)
const secret = randomKey()

interface Place {
  readonly name: 'lmdb' | 'redis'
  readonly dataDir: string
  readonly env: Readonly<Record<string, string>>
  server: RunningServer
}

async function open(name: 'lmdb' | 'redis'): Promise<Place> {
  const dataDir = join(directory, name)
  const ways = { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl }
  const env = {
    CATALOG,
    UPSTREAM: upstream.url,
    ...payableEnv(chains, ways, [await chains.signer()], secret),
    ...(name === 'redis' ? { REDIS_URL: redis?.url ?? '' } : {}),
  }
  return { name, dataDir, env, server: await start(dataDir, env) }
}

function start(dataDir: string, env: Readonly<Record<string, string>>): Promise<RunningServer> {
  return startServer({ args: ['--handlers', join(FIXTURE, 'handlers')], dataDir, env })
}

const places = await Promise.all([open('lmdb'), ...(redis === undefined ? [] : [open('redis')])])
t.teardown(async () => {
  await Promise.all(places.map(({ server }) => server.stop()))
  await Promise.all([upstream.close(), redis?.stop(), chains.close()])
  rmSync(directory, { recursive: true, force: true })
})

type Protocol = 'x402' | 'mpp'

interface ProtocolSetup {
  readonly place: Place
  readonly protocol: Protocol
  readonly wallet: () => Promise<Hex>
  readonly charges: (key: Hex) => Promise<number>
}

const setups = places.flatMap((place) =>
  (['x402', 'mpp'] as const).map((protocol): ProtocolSetup => {
    const chain = protocol === 'x402' ? chains.base : chains.tempo
    return {
      place,
      protocol,
      wallet: () => chain.wallet(),
      charges: async (key) => (await chain.charged(addressOf(key))).transfers,
    }
  }),
)

let last = 0
function fresh(): string {
  last += 1
  return `n${last}`
}

async function sign(
  { place, protocol }: ProtocolSetup,
  operation: string,
  n: string,
  key: Hex,
): Promise<Payment> {
  const connection = connect(place.server.url)
  const offers = HTTP.offers(await connection.send(HTTP.request(operation, { n })))
  connection.close()
  return pay(protocol, offers, key)
}

function pay(protocol: Protocol, offers: Offers, key: Hex): Promise<Payment> {
  return protocol === 'x402' ? payByX402(offers, key) : payByMpp(chains.tempo.rpcUrl, offers, key)
}

/** A buyer who reads event by event. */
interface Reader {
  readonly response: Response
  /** Resolves to all that has come once that contains `part`. */
  readonly until: (part: string) => Promise<string>
  /** Resolves to all that comes; rejects when it breaks off. */
  readonly rest: () => Promise<string>
  readonly leave: () => void
}

function read(response: Response, leave: () => void): Reader {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let got = ''
  const more = async (): Promise<boolean> => {
    const { done, value } = (await reader?.read()) ?? { done: true }
    got += value ?? ''
    return !done
  }
  return {
    response,
    until: async (part) => {
      while (!got.includes(part)) if (!(await more())) throw new Error(`the stream ended without ${part}`)
      return got
    },
    rest: async () => {
      while (await more());
      return got
    },
    leave,
  }
}

/** Sends a payment; the answer may come while the upstream still makes it. */
async function send(
  { place }: ProtocolSetup,
  operation: string,
  n: string,
  payment: Payment,
): Promise<Reader> {
  const { method = 'GET', path, headers = {}, body } = HTTP.request(operation, { n }, payment)
  const gone = new AbortController()
  const init = { method, headers, signal: gone.signal, ...(body === undefined ? {} : { body }) }
  return read(await fetch(place.server.url + path, init), () => gone.abort())
}

/** A payment whose stream has begun. */
async function begin(setup: ProtocolSetup, operation: string) {
  const [key, n] = [await setup.wallet(), fresh()]
  const payment = await sign(setup, operation, n, key)
  const sending = send(setup, operation, n, payment)
  const run = await upstream.next(n, 1)
  run.begin()
  return { key, n, payment, run, reader: await sending }
}

type Again =
  | { readonly kind: 'answered'; readonly reader: Reader }
  /** Without a run. */
  | { readonly kind: 'refused'; readonly problem: string }

/** Sends a payment whose first run broke off until the upstream runs again, and has that run answer it. */
async function sendAgain(
  setup: ProtocolSetup,
  operation: string,
  n: string,
  payment: Payment,
): Promise<Again> {
  const next = upstream.next(n, 2)
  for (;;) {
    const sending = send(setup, operation, n, payment)
    const run = await Promise.race([next, sending.then(() => undefined)])
    if (run !== undefined) {
      await play(run, 'one', 'two')
      return { kind: 'answered', reader: await sending }
    }
    const { response, rest } = await sending
    const problem = await rest()
    if (response.status !== 503) return { kind: 'refused', problem }
    await delay(Number(response.headers.get('retry-after')) * 1_000)
  }
}

/** Waits until the payment of a stream that broke off is to be refunded. */
async function refundDue({ place }: ProtocolSetup, { response }: Reader): Promise<void> {
  const url = `${place.server.url}/payments/${response.headers.get('ratecard-payment')}`
  await until('the refund is due', async () => (await (await fetch(url)).text()).includes('"refund":"due"'))
}

/** What is wrong with an answer that is no stream. */
async function problemOf({ response, rest }: Reader): Promise<object> {
  const { code, charged, refund }: Record<string, unknown> = JSON.parse(await rest())
  return { status: response.status, code, charged, ...(refund === undefined ? {} : { refund }) }
}

async function play(run: Run, ...events: readonly string[]): Promise<void> {
  run.begin()
  for (const event of events) await run.event(event)
  run.end()
}

const sse = (...events: readonly string[]): string => events.map((event) => `data: ${event}\n\n`).join('')

for (const setup of setups) {
  const { place, protocol, wallet, charges } = setup
  t.test(`sells streams by ${protocol}, ledger in ${place.name}`, async (t) => {
    t.test('passes every event on to a stock client before the upstream makes the next one', async (t) => {
      for (const operation of ['POST chat', 'lines', 'POST streamed']) {
        const [key, n] = [await wallet(), fresh()]
        const paying =
          protocol === 'x402'
            ? stockFetch(key)
            : (stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(key)).fetch as typeof fetch)
        const isLines = operation === 'lines'
        const asked = isLines
          ? paying(`${place.server.url}/paid/lines?n=${n}`)
          : paying(`${place.server.url}/paid/${operation.split(' ')[1]}`, {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({ n }),
            })
        const run = await upstream.next(n, 1)
        t.equal(await charges(key), 0, `${operation}: nothing is charged before the upstream has agreed`)
        run.begin()
        const response = await asked
        t.equal(response.status, 200)
        t.equal(await charges(key), 1, 'and one payment before the first event')
        t.match(run.key, /^pay_/)
        const reader = read(response, () => undefined)
        await run.event('one')
        await reader.until('one')
        await run.event('{"two":2}')
        await reader.until('2')
        run.end()
        t.equal(await reader.rest(), isLines ? 'one\n{"two":2}\n' : sse('one', '{"two":2}'))
        if (isLines) t.equal(response.headers.get('content-type'), 'application/x-ndjson')
        else {
          t.match(response.headers.get('content-type'), /^text\/event-stream/)
          t.equal(response.headers.get('x-model'), 'small')
        }
        t.ok(response.headers.get('ratecard-payment'))
        t.equal(await charges(key), 1)
      }
    })

    t.test('records the rest for a buyer who leaves, and gives it for the same payment', async (t) => {
      const { key, n, payment, run, reader } = await begin(setup, 'POST chat')
      await run.event('one')
      await reader.until('one')
      reader.leave()
      const again = send(setup, 'POST chat', n, payment)
      await run.event('two')
      run.end()
      const { response, rest } = await again
      t.equal(response.status, 200)
      t.equal(await rest(), sse('one', 'two'))
      t.equal(response.headers.get('content-type'), reader.response.headers.get('content-type'))
      t.equal(response.headers.get('x-model'), 'small')
      t.equal(upstream.runs(n).length, 1)
      t.equal(await charges(key), 1)
    })

    t.test('charges nothing when the upstream breaks off before its headers', async (t) => {
      const [key, n] = [await wallet(), fresh()]
      const payment = await sign(setup, 'POST chat', n, key)
      const sending = send(setup, 'POST chat', n, payment)
      ;(await upstream.next(n, 1)).breakOff()
      t.strictSame(await problemOf(await sending), { status: 502, code: 'source_error', charged: 'no' })
      const again = send(setup, 'POST chat', n, payment)
      await play(await upstream.next(n, 2), 'one')
      t.equal(await (await again).rest(), sse('one'))
      t.equal(await charges(key), 1)
      t.equal(new Set(upstream.runs(n).map((each) => each.key)).size, 1, 'one idempotency key')
    })

    t.test('runs a stream that broke off again for the same payment', async (t) => {
      for (const events of [[], ['one'], ['one', 'two']]) {
        const { key, n, payment, run, reader } = await begin(setup, 'POST chat')
        for (const event of events) {
          await run.event(event)
          await reader.until(event)
        }
        run.breakOff()
        await t.rejects(reader.rest(), `broken off after ${events.length} events`)
        const again = send(setup, 'POST chat', n, payment)
        await play(await upstream.next(n, 2), 'one', 'two')
        t.equal(await (await again).rest(), sse('one', 'two'))
        t.equal(await charges(key), 1)
        t.equal(new Set(upstream.runs(n).map((each) => each.key)).size, 1, 'one idempotency key')
      }
    })

    t.test('owes a refund after three streams that broke off', async (t) => {
      const [key, n] = [await wallet(), fresh()]
      const payment = await sign(setup, 'POST chat', n, key)
      for (const count of [1, 2, 3]) {
        const sending = send(setup, 'POST chat', n, payment)
        const run = await upstream.next(n, count)
        run.begin()
        const reader = await sending
        await run.event('one')
        await reader.until('one')
        run.breakOff()
        await t.rejects(reader.rest())
        if (count === 3) await refundDue(setup, reader)
      }
      const refused = await send(setup, 'POST chat', n, payment)
      t.not(refused.response.status, 200)
      await refused.rest()
      t.equal(upstream.runs(n).length, 3)
      t.equal(await charges(key), 1)
    })

    t.test('breaks a stream off that is larger than the catalog allows, and owes a refund', async (t) => {
      const { key, run, reader } = await begin(setup, 'lines')
      await run.event('x'.repeat(900))
      await reader.until('\n')
      await run.event('x'.repeat(100))
      await t.rejects(reader.rest())
      await refundDue(setup, reader)
      t.equal(await charges(key), 1)
    })

    t.test('charges first where the catalog says so', async (t) => {
      const [key, n] = [await wallet(), fresh()]
      const sending = send(setup, 'PUT chat', n, await sign(setup, 'PUT chat', n, key))
      const run = await upstream.next(n, 1)
      t.equal(await charges(key), 1)
      await play(run, 'one')
      t.equal(await (await sending).rest(), sse('one'))
    })

    t.test('answers a tool with all of the stream in one text', async (t) => {
      const [key, n] = [await wallet(), fresh()]
      const [, transport] = TRANSPORTS
      if (transport === undefined) throw new Error('a tool has a transport')
      const connection = connect(place.server.url)
      const payment = await pay(
        protocol,
        transport.offers(await connection.send(transport.request('chat', { n }))),
        key,
      )
      const asking = connection.send(transport.request('chat', { n }, payment))
      await play(await upstream.next(n, 1), 'one', 'two')
      const { result } = messageOf(await asking) as { readonly result: object }
      t.match(result, { content: [{ type: 'text', text: sse('one', 'two') }] })
      connection.close()
      t.equal(await charges(key), 1)
    })
  })
}

/** Where a stream is when its server is killed. */
const STAGES = {
  'before its settlement': async () => undefined,
  'between its settlement and its first byte': async (run: Run, sending: Promise<Reader>) => {
    run.begin()
    await sending
  },
  'in the middle of it': async (run: Run, sending: Promise<Reader>) => {
    run.begin()
    const reader = await sending
    await run.event('one')
    await reader.until('one')
  },
  'after its last byte and before its record is complete': async (run: Run, sending: Promise<Reader>) => {
    run.begin()
    const reader = await sending
    await run.event('one')
    await run.event('two')
    await reader.until('two')
  },
} satisfies Record<string, (run: Run, sending: Promise<Reader>) => Promise<void>>

for (const place of places)
  t.test(`charges once for one whole stream after kill -9 at every stage: ${place.name}`, async (t) => {
    const theirs = setups.filter((setup) => setup.place === place)
    const buyers = theirs.flatMap((setup) =>
      (['POST chat', 'PUT chat', 'POST streamed'] as const).flatMap((operation) =>
        Object.entries(STAGES).map(([stage, reach]) => ({ setup, operation, stage, reach, n: fresh() })),
      ),
    )
    // Payments of MPP expire after 25 s, so that wallets come first.
    const funded = await Promise.all(
      buyers.map(async (buyer) => ({ ...buyer, key: await buyer.setup.wallet() })),
    )
    const killed = await Promise.all(
      funded.map(async (buyer) => {
        const { setup, operation, n, reach, key } = buyer
        const payment = await sign(setup, operation, n, key)
        const sending = send(setup, operation, n, payment)
        sending.catch(() => undefined)
        await reach(await upstream.next(n, 1), sending)
        return { ...buyer, payment, sending }
      }),
    )
    await place.server.kill()
    place.server = await start(place.dataDir, place.env)
    await Promise.all(
      killed.map(async ({ setup, operation, stage, n, key, payment, sending }) => {
        const name = `${setup.protocol}, ${operation}, killed ${stage}`
        const broken = await sending.then(
          (reader) =>
            reader.rest().then(
              () => false,
              () => true,
            ),
          () => true,
        )
        t.ok(broken, `${name}: the buyer sees that it broke off`)
        let again = await sendAgain(setup, operation, n, payment)
        const hasExpired = again.kind === 'refused'
        if (again.kind === 'refused') {
          // Those of MPP expire after 25 s: on a slow machine before another process may take them over.
          t.strictSame([setup.protocol, stage], ['mpp', 'before its settlement'], again.problem)
          t.match(again.problem, /"status":402,.*"charged":"no"/, name)
          t.equal(await setup.charges(key), 0, name)
          again = await sendAgain(setup, operation, n, await sign(setup, operation, n, key))
        }
        if (again.kind === 'refused') return t.fail(`${name}: ${again.problem}`)
        const { response, rest } = again.reader
        t.strictSame([response.status, await rest()], [200, sse('one', 'two')], name)
        const runs = upstream.runs(n)
        t.strictSame(
          {
            charges: await setup.charges(key),
            runs: runs.length,
            keys: new Set(runs.map((run) => run.key)).size,
          },
          { charges: 1, runs: 2, keys: hasExpired ? 2 : 1 },
          name,
        )
      }),
    )
    const { stdout } = await runProgram(
      ['payments', 'reconcile', '--json', '--catalog', CATALOG, '--data-dir', place.dataDir],
      place.env,
    )
    t.match(stdout, '"status": "checked"')
    // Both places are paid to one payee: what the other one has booked is not missing here.
    const payers = killed.map(({ key }) => addressOf(key).toLowerCase())
    t.notOk(
      payers.some((payer) => stdout.toLowerCase().includes(payer)),
      'the books of these payers are those of the chain',
    )
  })

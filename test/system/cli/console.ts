import { request } from 'node:http'
import t, { type Test } from 'tap'
import { onchainClient } from '../../support/base-chain.ts'
import { addressOf, stockFetch } from '../../support/payment.ts'
import { readSandboxFile, runProgram, type RunningServer, startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'

t.setTimeout(240_000)

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const chain = onchainClient(evm)
const pay = stockFetch(evm.payerKey)

/** The address that the server has printed last. */
function entranceOf({ output }: RunningServer): string {
  return [...output().matchAll(/^console: (\S+)$/gm)].at(-1)?.[1] ?? ''
}

const origin = new URL(entranceOf(server)).origin

interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: string
}

/** `fetch` would not send another Host. */
function ask(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  base = origin,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, base), { method, headers }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

async function enter(server: RunningServer): Promise<string> {
  const entrance = new URL(entranceOf(server))
  const { headers } = await ask(entrance.pathname + entrance.search, {}, 'GET', entrance.origin)
  return String(headers['set-cookie']).split(';')[0] ?? ''
}

const VIEWS = [
  '/',
  '/revenue',
  '/revenue?days=90',
  '/lost-sales',
  '/payments',
  '/payments?show=due',
  '/routes',
  '/buyers',
  '/catalog',
  '/listings',
  '/health',
]

t.test('shows each view before anything is sold', async (t) => {
  const Cookie = await enter(server)
  for (const path of VIEWS) {
    const { status, body } = await ask(path, { Cookie })
    t.equal(status, 200, path)
    t.match(body, /<h1>/, path)
    t.notMatch(body, /undefined|NaN|\[object/, path)
  }
  t.match((await ask('/revenue', { Cookie })).body, 'Nothing was sold')
  t.match((await ask('/payments', { Cookie })).body, 'No payments yet')
  t.equal((await ask('/nothing', { Cookie })).status, 404)
  t.equal((await ask('/payments/pay_0000000000000000000000', { Cookie })).status, 404)
})

t.test('shows nothing to strangers', async (t) => {
  const entrance = new URL(entranceOf(server))
  const used = entrance.pathname + entrance.search
  const entered = await ask(used)
  t.equal(entered.status, 200)
  t.match(String(entered.headers['set-cookie']), /HttpOnly; SameSite=Strict/)
  const Cookie = String(entered.headers['set-cookie']).split(';')[0] ?? ''
  t.equal((await ask('/', { Cookie })).status, 200)

  const again = await ask(used)
  t.equal(again.status, 403, 'a replayed token')
  t.equal(again.headers['set-cookie'], undefined)
  for (const [what, headers] of Object.entries({
    'no cookie': {},
    'another cookie': { Cookie: `ratecard_console_${entrance.port}=AAAA` },
    'the cookie of another console': { Cookie: Cookie.replace(entrance.port, '4022') },
    'another site': { Cookie, Origin: 'https://evil.example' },
    'another port': { Cookie, 'Sec-Fetch-Site': 'same-site' },
    'a link on another site': { Cookie, 'Sec-Fetch-Site': 'cross-site' },
  })) {
    for (const path of [...VIEWS, '/events', '/revenue.csv']) {
      const { status, body } = await ask(path, headers)
      t.equal(status, 403, `${what}: ${path}`)
      t.notMatch(body, /Revenue today|<nav/, what)
    }
  }
  for (const Host of ['evil.example', `evil.example:${entrance.port}`, 'localhost.evil.example'])
    t.equal((await ask('/', { Cookie, Host })).status, 421, Host)
  for (const path of ['/revenue', '/enter', used, '/console.js', '/lost-sales']) {
    const { status } = await ask(path, { Cookie }, 'GET', server.url)
    t.equal(status, 404, `the public origin: ${path}`)
  }
  const { headers } = await ask('/', { Cookie })
  t.match(headers['content-security-policy'], /default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/)
  t.equal(headers['access-control-allow-origin'], undefined)
})

t.test('shows the money of the ledger and the chain, to the last digit', async (t) => {
  const Cookie = await enter(server)
  for (const path of ['/paid/ping', '/paid/ping', '/paid/util/workday?date=2026-11-26&country=DE']) {
    const answer = await pay(server.url + path)
    t.equal(answer.status, 200, path)
    await answer.text()
  }
  const listed = JSON.parse(
    (await runProgram(['payments', 'list', '--totals', '--json', '--sandbox', '--data-dir', server.dataDir]))
      .stdout,
  ) as { revenue: { payments: number; money: { amount: string; token: string }[] } }
  t.match(listed.revenue, { payments: 3, money: [{ amount: '0.004000', token: 'USDC' }] })
  const received = await chain.received(evm.payTo)
  t.equal(received.length, 3)
  const revenue = (await ask('/revenue?days=1', { Cookie })).body
  t.match(revenue, '<td class="number exact" data-label="Money">0.004 USDC</td>')
  t.match(revenue, '<span class="value">$0.004</span>')
  const csv = await ask('/revenue.csv?days=1', { Cookie })
  t.match(csv.headers['content-disposition'], /^attachment; filename="revenue-/)
  const rows = csv.body.trim().split('\r\n').slice(1)
  t.strictSame(
    new Set(rows.map((row) => row.split(',').slice(-2).join())),
    new Set(['1,0.002000', '2,0.002000']),
  )
  const payer = addressOf(evm.payerKey)
  t.match((await ask('/buyers?days=1', { Cookie })).body.toLowerCase(), payer.toLowerCase())
  t.equal(
    (await ask('/buyers.csv?days=1', { Cookie })).body.toLowerCase(),
    `payer,payments,usd\r\n${payer.toLowerCase()},3,0.004000\r\n`,
  )
  const rebuilt = await runProgram(['ledger', 'totals', '--sandbox', '--data-dir', server.dataDir])
  t.match(rebuilt.stdout, /^the totals are those of \d records?$/m)
  t.equal((await ask('/revenue.csv?days=1', { Cookie })).body, csv.body, 'rebuilt while the server runs')
})

t.test('finds a payment by its id, its payer and its transaction, and draws its exchange', async (t) => {
  const Cookie = await enter(server)
  const answer = await pay(`${server.url}/paid/ping`)
  const id = answer.headers.get('ratecard-payment') ?? ''
  await answer.text()
  const byId = await ask(`/payments?q=${id}`, { Cookie })
  t.match([byId.status, byId.headers['location']], [303, `/payments/${id}`])
  const page = await eventually('the answer has arrived', async () => {
    const { body } = await ask(`/payments/${id}`, { Cookie })
    return body.includes('the answer arrived') ? body : undefined
  })
  for (const words of [
    'signs and pays',
    'does the work',
    'sends the settlement',
    'the money has moved',
    '0.001 USDC',
  ])
    t.match(page, words)
  const transaction = /title="(0x[0-9a-f]{64})"/.exec(page)?.[1] ?? ''
  t.match((await ask(`/payments?q=${transaction}`, { Cookie })).body, id)
  for (const spelt of [addressOf(evm.payerKey), addressOf(evm.payerKey).toLowerCase()])
    t.match((await ask(`/payments?q=${spelt}`, { Cookie })).body, id)
  t.match((await ask(`/payments?q=0x${'12'.repeat(32)}`, { Cookie })).body, 'No payment has this')
})

t.test('counts what was asked, signed, settled and delivered, and why the rest was not', async (t) => {
  const Cookie = await enter(server)
  await (await fetch(`${server.url}/paid/util/workday`, { method: 'HEAD' })).text()
  await (await fetch(`${server.url}/paid/util/workday?country=${'x'.repeat(9)}`)).text()
  await (
    await fetch(`${server.url}/paid/util/workday`, { headers: { 'PAYMENT-SIGNATURE': 'nonsense' } })
  ).text()
  const body = await eventually('all is counted', async () => {
    const page = (await ask('/lost-sales?days=1', { Cookie })).body
    return page.includes('data-step="delivered">4<') && page.includes('invalid_payload') ? page : undefined
  })
  t.match(body, 'data-step="settled">4<')
  t.match(body, 'data-step="signed">5<')
  t.match(body, /parameters_invalid<\/code> country/)
  t.match(body, /Probes: crawlers and monitors<\/th><td class="number" data-label="Asked">1</)
})

t.test('sends a refund that its operator has confirmed, once', async (t) => {
  const Cookie = await enter(server)
  const answer = await pay(`${server.url}/paid/ping`)
  const id = answer.headers.get('ratecard-payment') ?? ''
  await answer.text()
  const path = `/payments/${id}/refund`
  t.match((await ask(path, { Cookie })).body, 'Send 0.001 USDC back')
  const payer = addressOf(evm.payerKey)
  const before = (await chain.received(payer)).length
  t.equal((await ask(path, { Cookie }, 'POST')).status, 403, 'without an origin')
  t.equal((await ask(path, { Cookie, Origin: 'https://evil.example' }, 'POST')).status, 403)
  t.equal((await ask(path, { Origin: origin }, 'POST')).status, 403, 'without the cookie')
  t.equal((await chain.received(payer)).length, before)
  const confirmed = (): Promise<Answer> => ask(path, { Cookie, Origin: origin }, 'POST')
  // The server works on a payment until its delivery is known.
  const done = await eventually('the refund is sent', async () => {
    const made = await confirmed()
    return String(made.headers['location']).includes('reason=') ? undefined : made
  })
  t.match([done.status, done.headers['location']], [303, `/payments/${id}?refund=sent`])
  await Promise.all([confirmed(), confirmed()])
  t.equal((await chain.received(payer)).length, before + 1)
  t.match((await ask(`/payments/${id}`, { Cookie })).body, 'the money was sent back')
  t.match((await ask(path, { Cookie })).body, 'was refunded before')
})

t.test('sends the calls of an open page while they go on', async (t) => {
  const Cookie = await enter(server)
  const events = await openEvents(t, Cookie)
  const answer = await pay(`${server.url}/paid/ping`)
  const id = answer.headers.get('ratecard-payment') ?? ''
  await answer.text()
  await until('the call is delivered', () =>
    events().some((each) => each.includes(`call-${id}`) && each.includes('delivered</span>')),
  )
  t.ok(events().some((each) => each.startsWith('event: call')))
})

t.test('is off unless it is asked for, and takes the port that it is given', async (t) => {
  const misused = await runProgram(['serve', '--console=none'])
  t.equal(misused.code, 64)
  t.match(misused.stderr, '--console takes a port from 0 to 65535')
})

/** What is found, once it is there. */
async function eventually<T>(what: string, find: () => Promise<T | undefined>): Promise<T> {
  let found: T | undefined
  await until(what, async () => (found = await find()) !== undefined)
  if (found === undefined) throw new Error(what)
  return found
}

async function openEvents(t: Test, Cookie: string): Promise<() => readonly string[]> {
  let text = ''
  await new Promise<void>((resolve, reject) => {
    const sent = request(new URL('/events', origin), { headers: { Cookie } }, (response) => {
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', () => undefined)
      resolve()
    })
    sent.on('error', reject)
    sent.end()
    t.teardown(() => sent.destroy())
  })
  return () => text.split('\n\n')
}

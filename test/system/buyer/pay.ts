import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { MAIN, nodeCommand, readSandboxFile, runProgram, startServer } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'

/** Resolves when the buyer has printed the first event. */
const seen = new EventEmitter()
const drawn = once(seen, 'first')

const upstream = await listening(t, (request, response) => {
  if (request.url === '/echo') {
    response.writeHead(200, { 'Content-Type': request.headers['content-type'] })
    return void request.pipe(response)
  }
  if (request.url === '/draw') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('data: first\n\n')
    return void drawn.then(() => response.end('data: last\n\n'))
  }
  const status = request.url === '/ok' ? 200 : 500
  response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"inner":"secret"}')
})
const shop = writeShop(
  t,
  `  /paid/greet: { price: 0.01, summary: Greets, parameters: { name: { type: string, minLength: 2 } } }
  /paid/broken: { price: 0.02, upstream: '${upstream}/broken', summary: Fails, credential: SHOP_KEY }
  /paid/bodiless: { price: 0.02, summary: Returns no body }
  POST /paid/shout: { price: 0.01, upstream: '${upstream}/echo', summary: Echoes, body: { properties: { text: { type: string, required: true, example: hello } } } }
  PUT /paid/picture: { price: 0.01, upstream: '${upstream}/echo', summary: Echoes, body: { media_type: image/png }, response: { media_type: image/png } }
  POST /paid/draw: { price: 0.01, upstream: '${upstream}/draw', summary: Streams, response: { stream: true, media_type: text/event-stream } }
  /paid/later: { price: 0.03, summary: Later, planned: true }
  /greet: { price: free, handler: greet, summary: Greets, parameters: { name: { type: string, minLength: 2 } } }
`,
)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
  // Behind a proxy nobody sees whether an answer arrives, so it is given again for half a minute.
  env: { SHOP_KEY: 'upstream-key-7f3a', TRUST_PROXY: '1' },
})
t.teardown(() => server.stop())
const { url, dataDir } = server
const { payerKey } = readSandboxFile(server).evm

async function listening(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function pay(t: Test, argv: readonly string[], variables: Record<string, string> = {}): Promise<Ran> {
  return runLine(['pay', ...argv], { variables: { DATA_DIR: dataDir, ...variables } }).then((ran) => {
    t.notMatch(ran.out + ran.err, payerKey.slice(2), 'no key is printed')
    t.notMatch(ran.out + ran.err, /upstream-key|secret|stack|node_modules/)
    return ran
  })
}

function bill({ out }: Ran): JsonObject {
  const value: unknown = JSON.parse(out)
  if (!isJsonObject(value)) throw new Error(out)
  return value
}

t.test('prints the result as JSON alone for scripts', async (t) => {
  const { code, stdout, stderr } = await runProgram(['pay', '/paid/greet?name=Ann', '--json'], {
    DATA_DIR: dataDir,
  })
  t.equal(code, 0)
  t.equal(stderr, '')
  t.notMatch(stdout, payerKey.slice(2))
  const said = bill({ code: 0, out: stdout, err: stderr })
  t.strictSame(Object.keys(said), [
    'status',
    'charged',
    'protocol',
    'network',
    'amount',
    'transaction',
    'payment',
    'body',
  ])
  t.match(said, {
    status: 200,
    charged: 'yes',
    protocol: 'x402',
    network: 'eip155:84532',
    amount: '0.010000',
    transaction: /^0x[0-9a-f]{64}$/,
    payment: /.+/,
    body: { greeting: 'Hello Ann' },
  })
})

t.test('counts a charge once when the answer of an earlier payment is given again', async (t) => {
  const answers = []
  for (let n = 0; n < 3; n += 1) answers.push(bill(await pay(t, ['/paid/greet?name=Thrice', '--json'])))
  t.strictSame(
    answers.map((each) => each['charged']),
    ['yes', 'no', 'no'],
  )
  t.equal(new Set(answers.map((each) => each['transaction'])).size, 1)
  const again = await pay(t, ['/paid/greet?name=Thrice'])
  t.match(again.err, /bought before with pay_\S+: this one was not used[^]*200, charged: no/)
  t.match(again, { code: 0, out: /Hello Thrice/ })
})

t.test('prints numbers as they came', async (t) => {
  const text = '{"id":12345678901234567890,"one":1.0,"small":1e-9,"list":[-0.10,7],"text":"1.0 \\" 2.0"}'
  const host = await listening(t, (_, response) => response.end(text))
  const told = await pay(t, [`${host}/x`])
  t.equal(told.out.replace(/\n */g, '').replaceAll('": ', '":'), text)
  t.match((await pay(t, [`${host}/x`, '--json'])).out, text)
})

t.test('shows each step to a person on stderr, and the answer alone on stdout', async (t) => {
  const ran = await pay(t, ['/paid/greet?name=Bob'])
  t.equal(ran.code, 0)
  t.match(
    ran.err,
    /402 payment required[^]*0\.01 USD in USDC on Base Sepolia[^]*signed by 0x[^]*settled in 0x[^]*charged: yes/,
  )
  t.match(JSON.parse(ran.out), { greeting: 'Hello Bob' })
})

t.test('gets a free route without a payment', async (t) => {
  const ran = await pay(t, ['/greet', '--json'])
  t.equal(ran.code, 0)
  t.match(bill(ran), {
    status: 200,
    charged: 'no',
    protocol: null,
    network: null,
    amount: null,
    transaction: null,
    payment: null,
  })
})

t.test('refuses to sign more than --max', async (t) => {
  const ran = await pay(t, ['/paid/greet', '--max', '0.009999', '--json'])
  t.equal(ran.code, 3)
  t.match(bill(ran), { status: 402, charged: 'no', amount: '0.010000', transaction: null })
  t.equal((await pay(t, ['/paid/greet', '--max', '0.01', '--json'])).code, 0, 'the limit itself is fine')
})

t.test('exits with a code of its own, uncharged, when the request fails', async (t) => {
  for (const [target, status, code] of [
    ['/paid/broken', 502, 'source_error'],
    ['/paid/later', 501, 'not_implemented'],
    ['/paid/bodiless', 500, 'internal'],
  ] as const) {
    const ran = await pay(t, [target, '--json', '--anyway'])
    t.equal(ran.code, 4, target)
    t.match(bill(ran), { status, charged: 'no', transaction: null, body: { code, charged: 'no' } })
    t.notMatch(ran.out, upstream)
  }
  const wrong = await pay(t, ['/paid/greet?name=x', '--json', '--anyway'])
  t.equal(wrong.code, 4)
  t.match(bill(wrong), {
    status: 422,
    charged: 'no',
    body: { charged: 'no', detail: [{ type: 'string_too_short' }] },
  })
  const absent = await pay(t, ['/paid/nothing', '--json'])
  t.equal(absent.code, 4)
  t.match(bill(absent), { status: 404, charged: 'no', protocol: null })
})

t.test('signs nothing when the shop says that the call would fail', async (t) => {
  for (const [target, status] of [
    ['/paid/greet?name=x', 422],
    ['/paid/greet?nane=ann', 422],
    ['/paid/later', 501],
  ] as const) {
    const ran = await pay(t, [target])
    t.equal(ran.code, 4, target)
    t.match(ran.err, new RegExp(`the call would fail: ${status}, .*; --anyway sends`))
    t.notMatch(ran.err, /signed by/)
    t.match(bill(await pay(t, [target, '--json'])), {
      status: 402,
      charged: 'no',
      body: { would_fail: { status } },
    })
  }
})

t.test('exits uncharged when the address is unreachable', async (t) => {
  const ran = await pay(t, ['http://127.0.0.1:1/paid/x', '--json'])
  t.equal(ran.code, 4)
  t.match(bill(ran), { status: 0, charged: 'no', body: null })
})

t.test('uses the wallet of the sandbox on its own sandbox only, by each name of this machine', async (t) => {
  for (const name of ['127.0.0.1', 'localhost']) {
    const paid = await pay(t, [`${url.replace('localhost', name)}/paid/greet?name=${name}`, '--json'])
    t.match(bill(paid), { status: 200, charged: 'yes' }, name)
  }
  const header = (await fetch(`${url}/paid/greet`)).headers.get('payment-required') ?? ''
  const elsewhere = await listening(t, (_, response) =>
    response.writeHead(402, { 'PAYMENT-REQUIRED': header }).end('{}'),
  )
  const ran = await pay(t, [`${elsewhere}/paid/greet`, '--json'])
  t.equal(ran.code, 4)
  t.match(bill(ran), { status: 402, charged: 'no', amount: '0.010000', transaction: null })
  const told = await pay(t, [`${elsewhere}/paid/greet`])
  t.match(told.err, 'no wallet: set PAYER_PRIVATE_KEY')
  const without = await pay(t, [`${url}/paid/greet`, '--json'], { DATA_DIR: t.testdir() })
  t.equal(without.code, 4, 'no sandbox file, no wallet')
})

t.test('requires a limit for a wallet with real money', async (t) => {
  const target = `${url}/paid/greet?name=Real`
  const variables = { PAYER_PRIVATE_KEY: payerKey, DATA_DIR: t.testdir() }
  const unlimited = await pay(t, [target, '--json'], variables)
  t.equal(unlimited.code, 3)
  t.match(bill(unlimited), { status: 402, charged: 'no', transaction: null })
  t.match((await pay(t, [target], variables)).err, '--max')
  const limited = await pay(t, [target, '--max', '0.01', '--json'], variables)
  t.equal(limited.code, 0)
  t.match(bill(limited), { status: 200, charged: 'yes' })
})

t.test('keeps a payment from the address a redirect points to', async (t) => {
  let visited = 0
  const thief = await listening(t, (_, response) => {
    visited += 1
    response.end()
  })
  const host = await listening(t, (_, response) => response.writeHead(307, { Location: `${thief}/x` }).end())
  const ran = await pay(t, [`${host}/x`, '--max', '1', '--json'], { PAYER_PRIVATE_KEY: payerKey })
  t.equal(ran.code, 4)
  t.equal(visited, 0)
})

t.test('refuses to sign an offer with unknown terms', async (t) => {
  const response = await fetch(`${url}/paid/greet`)
  const header = response.headers.get('payment-required') ?? ''
  const offer = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as { accepts: JsonObject[] }
  const [good = {}] = offer.accepts
  const pack = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
  for (const [name, sent] of [
    ['garbage', '%%%'],
    ['no object', pack(null)],
    ['version 1', pack({ ...offer, x402Version: 1 })],
    ['no offers', pack({ ...offer, accepts: [] })],
    ['another scheme', pack({ ...offer, accepts: [{ ...good, scheme: 'best' }] })],
    ['upto without an account that settles', pack({ ...offer, accepts: [{ ...good, scheme: 'upto' }] })],
    ['a network of its own', pack({ ...offer, accepts: [{ ...good, network: 'eip155:1337' }] })],
    ['a token of its own', pack({ ...offer, accepts: [{ ...good, asset: `0x${'9'.repeat(40)}` }] })],
    ['a negative amount', pack({ ...offer, accepts: [{ ...good, amount: '-1' }] })],
    ['a time that is no whole number', pack({ ...offer, accepts: [{ ...good, maxTimeoutSeconds: 1.5 }] })],
    ['no payee', pack({ ...offer, accepts: [{ ...good, payTo: 'me' }] })],
  ] as const) {
    let paid = 0
    const host = await listening(t, (request, answer) => {
      if (request.headers['payment-signature'] !== undefined) paid += 1
      answer.writeHead(402, { 'PAYMENT-REQUIRED': sent }).end('{}')
    })
    const ran = await pay(t, [`${host}/x`, '--max', '1', '--json'], { PAYER_PRIVATE_KEY: payerKey })
    t.equal(ran.code, 4, name)
    t.equal(paid, 0, name)
  }
})

t.test('prints an answer without a receipt, with the charge unknown', async (t) => {
  const header = (await fetch(`${url}/paid/greet`)).headers.get('payment-required') ?? ''
  const host = await listening(t, (request, response) => {
    const status = request.headers['payment-signature'] === undefined ? 402 : 200
    response.writeHead(status, { 'PAYMENT-REQUIRED': header }).end('"here you are"')
  })
  const ran = await pay(t, [`${host}/x`, '--max', '1', '--json'], { PAYER_PRIVATE_KEY: payerKey })
  t.equal(ran.code, 0)
  t.match(bill(ran), { status: 200, charged: 'unknown', body: 'here you are' })
})

t.test('sends the same payment again while its outcome is unknown', async (t) => {
  const header = (await fetch(`${url}/paid/greet`)).headers.get('payment-required') ?? ''
  const payments: string[] = []
  const host = await listening(t, (request, response) => {
    const payment = request.headers['payment-signature']
    if (typeof payment === 'string') payments.push(payment)
    if (payment === undefined) response.writeHead(402, { 'PAYMENT-REQUIRED': header }).end('{}')
    else if (payments.length < 2) response.writeHead(503).end('{"charged":"unknown"}')
    else response.writeHead(402, { 'PAYMENT-REQUIRED': header }).end('{"charged":"no"}')
  })
  const ran = await pay(t, [`${host}/x`, '--max', '1', '--json'], { PAYER_PRIVATE_KEY: payerKey })
  t.equal(ran.code, 4)
  t.equal(payments.length, 2)
  t.equal(new Set(payments).size, 1)
})

t.test('sends a body as curl does, and saves a binary answer byte for byte', async (t) => {
  const said = await pay(t, ['/paid/shout', '-d', '{"text":"quiet"}', '--json'])
  t.match(bill(said), { status: 200, charged: 'yes', body: { text: 'quiet' } })
  const folder = t.testdir({ 'page.png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 254]) })
  const [from, to] = [join(folder, 'page.png'), join(folder, 'out.png')]
  const picture = ['/paid/picture', '-X', 'put', '-d', `@${from}`, '-H', 'Content-Type: image/png']
  const shown = await pay(t, picture)
  t.match(shown, { code: 0, out: '', err: /7 bytes of image\/png: save them with --output FILE/ })
  t.match(await pay(t, [...picture, '-o', to]), { code: 0, out: '', err: /7 bytes of image\/png: in / })
  t.ok(readFileSync(to).equals(readFileSync(from)))
})

t.test('prints an answer that was paid for when its file cannot be written', async (t) => {
  const said = await pay(t, ['/paid/shout', '-d', '{"text":"quiet"}', '-o', '/dev/full'])
  t.match(said, { code: 1, out: /"text": "quiet"/, err: /\/dev\/full cannot be written \(ENOSPC\)/ })
  const folder = t.testdir({ 'page.png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 254]) })
  const picture = ['/paid/picture', '-X', 'put', '-d', `@${join(folder, 'page.png')}`]
  const coded = await pay(t, [...picture, '-H', 'Content-Type: image/png', '-o', '/dev/full'])
  t.match(coded, { code: 1, out: 'iVBORwD//g==', err: /the answer follows as base64/ })
})

t.test('refuses an invalid call before it sends a request', async (t) => {
  for (const [argv, reason] of [
    [['-X', 'BREW'], /--method takes one of GET, POST/],
    [['-X', 'GET', '-d', 'x'], /--method GET takes no --data/],
    [['-d', '@/nowhere/at/all'], /--data names a file that cannot be read/],
    [['-o', '/nowhere/at/all'], /--output names a file that cannot be written: .*ENOENT\. Nothing was paid/],
    [['-o', import.meta.filename + '/x'], /--output .*ENOTDIR\. Nothing was paid/],
    [['-o', '/'], /--output .*it is a folder\. Nothing was paid/],
    [['-H', 'no colon'], /--header takes "Name: value"/],
  ] as const) {
    const ran = await pay(t, ['/paid/shout', ...argv])
    t.equal(ran.code, 64)
    t.match(ran.err, reason)
  }
})

t.test('prints a stream line by line while it is made', async (t) => {
  const child = spawn(...nodeCommand([MAIN, 'pay', '-X', 'POST', '/paid/draw']), {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir },
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    // The upstream goes on when the first event has been printed.
    if (out.includes('first\n')) seen.emit('first')
  })
  const [code] = await once(child, 'close')
  t.strictSame({ code, out }, { code: 0, out: 'data: first\n\ndata: last\n\n' })
})

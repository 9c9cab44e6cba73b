import { createServer, type IncomingMessage } from 'node:http'
import { Mppx, tempo } from 'mppx/server'
import t, { type Test } from 'tap'
import { createClient, createPublicClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempo as tempoChain } from 'viem/tempo/chains'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import { startTempoChain, type TempoChain } from '../../../src/sandbox/tempo/chain.ts'
import { listening } from '../../support/http.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'

const chain = await startTempoChain(42431)
t.teardown(() => chain.stop())
const payerKey = randomKey()
const payer = addressOf(payerKey)
await chain.give(payer, 100_000_000n)
const RPC = { RPC_URL_42431: chain.rpcUrl }
const WALLET = { PAYER_PRIVATE_KEY: payerKey, ...RPC }

/** A seller built on the unmodified `mppx/server`, at 0.005 USD per call, on a real chain. */
interface MppxServer {
  readonly url: string
  readonly recipient: Hex
  /** Authorization headers received so far. */
  readonly credentials: readonly string[]
  readonly close: () => Promise<void>
}

/** Changes an answer, by the number of credentials received; undefined cuts the connection. */
type Spoil = (response: Response, credentials: number) => Response | undefined

interface MppxServerOptions {
  readonly spoil?: Spoil
  /** Pays the network’s fee for the payer. */
  readonly sponsorKey?: Hex
}

async function openMppxServer(
  { rpcUrl, chainId, currency }: Pick<TempoChain, 'rpcUrl' | 'chainId' | 'currency'>,
  { spoil = (response) => response, sponsorKey }: MppxServerOptions = {},
): Promise<MppxServer> {
  const recipient = addressOf(randomKey())
  const chain = { ...tempoChain, id: chainId, rpcUrls: { default: { http: [rpcUrl] } } }
  const client = createClient({ chain, transport: http(rpcUrl, { retryCount: 0 }) })
  const method = tempo.charge({
    currency,
    recipient,
    chainId,
    supportedModes: ['pull'],
    getClient: () => client,
    ...(sponsorKey === undefined ? {} : { feePayer: privateKeyToAccount(sponsorKey) }),
  })
  const mppx = Mppx.create({ realm: 'shop.test', secretKey: randomKey(), methods: [method] })
  const charge = mppx.charge({ amount: '0.005', description: 'one "quote", or two', scope: 'quote' })
  const credentials: string[] = []
  const answer = async (incoming: IncomingMessage): Promise<Response | undefined> => {
    const { authorization } = incoming.headers
    if (authorization !== undefined) credentials.push(authorization)
    const headers = authorization === undefined ? {} : { authorization }
    const result = await charge(new Request(`http://shop.test${incoming.url ?? '/'}`, { headers }))
    const response =
      result.status === 402 ? result.challenge : result.withReceipt(Response.json({ sold: true }))
    return spoil(response, credentials.length)
  }
  const { url, close } = await listening(
    createServer((incoming, outgoing) => {
      answer(incoming).then(
        async (response) => {
          if (response === undefined) return incoming.socket.destroy()
          const headers = Object.fromEntries(response.headers)
          return outgoing.writeHead(response.status, headers).end(await response.text())
        },
        () => incoming.socket.destroy(),
      )
    }),
  )
  return { url, recipient, credentials, close }
}

async function open(t: Test, options?: MppxServerOptions): Promise<MppxServer> {
  const shop = await openMppxServer(chain, options)
  t.teardown(() => shop.close())
  return shop
}

function pay(t: Test, argv: readonly string[], variables: Record<string, string>): Promise<Ran> {
  return runLine(['pay', ...argv], { variables: { DATA_DIR: t.testdirName, ...variables } }).then((ran) => {
    t.notMatch(ran.out + ran.err, payerKey.slice(2), 'no key is printed')
    t.notMatch(ran.out + ran.err, chain.rpcUrl, 'no endpoint is printed')
    t.notMatch(ran.out + ran.err, /viem|mppx|stack|node_modules/)
    return ran
  })
}

function bill({ out }: Ran): JsonObject {
  const value: unknown = JSON.parse(out)
  if (!isJsonObject(value)) throw new Error(out)
  return value
}

function isHash(value: Json | undefined): value is Hex {
  return typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value)
}

/** The answer with another WWW-Authenticate; a challenge is taken apart and put together by the test. */
function rewritten(response: Response, authenticate: (header: string) => string): Response {
  const headers = new Headers(response.headers)
  headers.set('www-authenticate', authenticate(headers.get('www-authenticate') ?? ''))
  return new Response(response.body, { status: response.status, headers })
}

function withRequest(header: string, change: (request: Record<string, Json>) => unknown): string {
  return header.replace(/request="([^"]*)"/, (_, text: string) => {
    const request: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    if (!isJsonObject(request)) throw new Error(text)
    return `request="${Buffer.from(JSON.stringify(change(request))).toString('base64url')}"`
  })
}

t.test('pays exactly the price by MPP and prints the transaction for scripts', async (t) => {
  const shop = await open(t)
  const ran = await pay(t, [`${shop.url}/x`, '--protocol', 'mpp', '--max', '0.005', '--json'], WALLET)
  t.equal(ran.code, 0)
  t.equal(ran.err, '')
  const said = bill(ran)
  t.match(said, {
    status: 200,
    charged: 'yes',
    protocol: 'mpp',
    network: 'eip155:42431',
    amount: '0.005000',
    transaction: /^0x[0-9a-f]{64}$/,
    payment: null,
    body: { sold: true },
  })
  t.equal(await chain.balance(shop.recipient), 5_000n, 'the price, exactly and once')
  const { transaction } = said
  if (!isHash(transaction)) throw new Error(ran.out)
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const receipt = await client.getTransactionReceipt({ hash: transaction })
  t.equal(receipt.status, 'success')
})

t.test('shows amount, network, recipient and network fee to a person', async (t) => {
  const shop = await open(t)
  const ran = await pay(t, [`${shop.url}/x`, '--max', '0.01'], WALLET)
  t.equal(ran.code, 0)
  t.match(
    ran.err,
    new RegExp(
      [
        '402 payment required',
        `0.005 USD in pathUSD on Tempo Moderato \\(eip155:42431\\) to ${shop.recipient}, and the network’s fee`,
        `signed by ${payer}`,
        'settled in 0x[0-9a-f]{64}',
        '200, charged: yes',
      ].join('[^]*'),
      'i',
    ),
  )
  t.match(JSON.parse(ran.out), { sold: true })
})

t.test('uses the MPP wallet of the sandbox on its own sandbox only', async (t) => {
  const shop = await open(t)
  const key = randomKey()
  await chain.give(addressOf(key), 1_000_000n)
  const sandbox = {
    baseUrl: shop.url,
    evm: { payerKey: randomKey() },
    tempo: { rpcUrl: chain.rpcUrl, chainId: 42431, payerKey: key },
  }
  const DATA_DIR = t.testdir({ 'sandbox.json': JSON.stringify(sandbox) })
  const ran = await pay(t, ['/x', '--json'], { DATA_DIR })
  t.equal(ran.code, 0)
  t.match(bill(ran), { status: 200, charged: 'yes', protocol: 'mpp' })
  t.equal(await chain.balance(shop.recipient), 5_000n)
  t.ok((await chain.balance(addressOf(key))) <= 995_000n)

  const other = await open(t)
  const refused = await pay(t, [`${other.url}/x`, '--json'], { DATA_DIR })
  t.equal(refused.code, 4)
  t.match(bill(refused), { status: 402, charged: 'no', protocol: 'mpp', transaction: null })
  t.same(other.credentials, [])
})

t.test('prefers x402 where both protocols are offered, unless MPP is requested', async (t) => {
  const offers = [
    {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '5000',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      payTo: payer,
      maxTimeoutSeconds: 60,
    },
  ]
  const required = (accepts: Json): string =>
    Buffer.from(JSON.stringify({ x402Version: 2, accepts })).toString('base64')
  const shopWith = (accepts: Json): Promise<MppxServer> =>
    open(t, {
      spoil: (response) => {
        if (response.status === 402) response.headers.set('payment-required', required(accepts))
        return response
      },
    })
  const both = await shopWith(offers)
  const first = await pay(t, [`${both.url}/x`, '--max', '1', '--json'], WALLET)
  t.match(bill(first), { status: 402, charged: 'no', protocol: 'x402', network: 'eip155:84532' })
  t.same(both.credentials, [])
  const asked = await pay(t, [`${both.url}/x`, '--max', '1', '--json', '--protocol', 'mpp'], WALLET)
  t.match(bill(asked), { status: 200, charged: 'yes', protocol: 'mpp' })

  const strange = await shopWith([{ ...offers[0], network: 'eip155:1337' }])
  const fallen = await pay(t, [`${strange.url}/x`, '--max', '1', '--json'], WALLET)
  t.match(
    bill(fallen),
    { status: 200, charged: 'yes', protocol: 'mpp' },
    'an x402 offer nobody here can sign',
  )
  const alone = await pay(t, [`${strange.url}/x`, '--max', '1', '--json', '--protocol', 'x402'], WALLET)
  t.equal(alone.code, 4)
  t.match(bill(alone), { status: 402, charged: 'no', protocol: null })
})

t.test('refuses an unknown protocol before the first request', async (t) => {
  const shop = await open(t)
  const ran = await pay(t, [`${shop.url}/x`, '--protocol', 'stripe', '--max', '1'], WALLET)
  t.equal(ran.code, 64)
  t.match(ran.err, '--protocol takes x402 or mpp')
})

t.test('finds the right challenge among others, in header lines that a proxy has merged', async (t) => {
  const shop = await open(t, {
    spoil: (response) =>
      rewritten(response, (header) =>
        [
          'Bearer realm="a, Payment method=\\"tempo\\""',
          header.replace('method="tempo"', 'method="stripe"'),
          header.replace('intent="charge"', 'intent="session"'),
          withRequest(header, (request) => ({ ...request, amount: '0' })),
          header,
          withRequest(header, (request) => ({ ...request, amount: '1' })),
        ].join(', '),
      ),
  })
  const ran = await pay(t, [`${shop.url}/x`, '--max', '0.005', '--json'], WALLET)
  t.match(bill(ran), { status: 200, charged: 'yes', amount: '0.005000' })
  t.equal(await chain.balance(shop.recipient), 5_000n)
})

t.test('refuses to sign more than --max, and requires the limit for real money', async (t) => {
  const shop = await open(t)
  for (const limit of [['--max', '0.004999'], []]) {
    const ran = await pay(t, [`${shop.url}/x`, '--json', ...limit], WALLET)
    t.equal(ran.code, 3)
    t.match(bill(ran), { status: 402, charged: 'no', amount: '0.005000', transaction: null })
  }
  t.same(shop.credentials, [])
  t.equal(await chain.balance(shop.recipient), 0n)
})

t.test('exits uncharged, with the reason, when the node is missing or silent', async (t) => {
  const shop = await open(t)
  const { RPC_URL_42431: _, ...lost } = WALLET
  for (const [variables, sentence] of [
    [lost, 'set RPC_URL_42431'],
    [{ ...lost, RPC_URL_42431: 'http://127.0.0.1:1/key-7f3a' }, 'does not answer: see RPC_URL_42431'],
    [{ ...lost, RPC_URL_42431: shop.url }, /does not answer|refuses this payment/],
  ] as const) {
    const ran = await pay(t, [`${shop.url}/x`, '--max', '1'], variables)
    t.equal(ran.code, 4)
    t.match(ran.err, sentence)
    t.match(ran.err, 'charged: no')
    t.notMatch(ran.err, 'key-7f3a')
  }
  t.same(shop.credentials, [])
})

t.test('refuses to sign an offer unless it understands every term', async (t) => {
  const details = (change: JsonObject) => (header: string) =>
    withRequest(header, ({ methodDetails, ...request }) => ({
      ...request,
      methodDetails: { ...(isJsonObject(methodDetails) ? methodDetails : {}), ...change },
    }))
  const terms = (change: JsonObject) => (header: string) =>
    withRequest(header, (request) => ({ ...request, ...change }))
  for (const [name, change] of [
    ['no challenge', () => 'Bearer realm="x"'],
    ['garbage', () => '%%%'],
    ['another scheme', (header) => header.replace(/^Payment/, 'Bearer')],
    ['no id', (header) => header.replace(/id="[^"]*", /, '')],
    ['an amount given twice', (header) => `${header}, request="e30"`],
    ['a request that is no JSON', (header) => header.replace(/request="[^"]*"/, 'request="e3"')],
    ['a request that is no object', (header) => header.replace(/request="[^"]*"/, 'request="W10"')],
    ['nothing to pay', terms({ amount: '0' })],
    ['a negative amount', terms({ amount: '-1' })],
    ['a broken amount', terms({ amount: '0.005' })],
    ['a token of its own', terms({ currency: `0x20c0${'9'.repeat(36)}` })],
    ['a token with a name of the language', terms({ currency: 'constructor' })],
    ['no recipient', terms({ recipient: 'me' })],
    ['a chain of its own', details({ chainId: 1337 })],
    ['no chain', terms({ methodDetails: {} })],
    ['no details', terms({ methodDetails: null })],
    ['push only', details({ supportedModes: ['push'] })],
    ['a share for somebody else', details({ splits: [{ amount: '1', recipient: payer }] })],
    ['a route over another token', details({ machineTokenEnabled: true })],
    ['a memo of its own', details({ memo: `0x${'1'.repeat(64)}` })],
    ['a sponsor that is no yes or no', details({ feePayer: 'yes' })],
    ['an end that has come', (header) => header.replace(/expires="[^"]*"/, 'expires="2020-01-01T00:00:00Z"')],
    ['an end that is no time', (header) => header.replace(/expires="[^"]*"/, 'expires="soon"')],
  ] satisfies [string, (header: string) => string][]) {
    const shop = await open(t, { spoil: (response) => rewritten(response, change) })
    const ran = await pay(t, [`${shop.url}/x`, '--max', '1', '--json'], WALLET)
    t.equal(ran.code, 4, name)
    t.match(bill(ran), { status: 402, charged: 'no', transaction: null }, name)
    t.same(shop.credentials, [], name)
  }
})

t.test('pays exactly the price to a seller that pays the network’s fee', async (t) => {
  const sponsorKey = randomKey()
  await chain.give(addressOf(sponsorKey), 1_000_000n)
  const shop = await open(t, { sponsorKey })
  const before = await chain.balance(payer)
  const ran = await pay(t, [`${shop.url}/x`, '--max', '1'], WALLET)
  t.equal(ran.code, 0)
  t.notMatch(ran.err, 'network’s fee')
  t.equal(before - (await chain.balance(payer)), 5_000n)
})

t.test('sends the payment in the header that the challenge names', async (t) => {
  const request = {
    amount: '5000',
    currency: chain.currency,
    recipient: payer,
    methodDetails: { chainId: chain.chainId, supportedModes: ['pull'] },
  }
  const encoded = Buffer.from(JSON.stringify(request)).toString('base64url')
  const challenge = `Payment id="1", realm="r", method="tempo", intent="charge", header="X-Payment", request="${encoded}"`
  const paid: unknown[] = []
  const shop = await listening(
    createServer(({ headers }, response) => {
      if (headers['x-payment'] === undefined)
        return response.writeHead(402, { 'WWW-Authenticate': challenge }).end()
      paid.push(headers)
      return response.end('"sold"')
    }),
  )
  t.teardown(() => shop.close())
  t.equal((await pay(t, [`${shop.url}/x`, '--max', '1'], WALLET)).code, 0)
  t.match(paid, [{ 'x-payment': /^Payment \S+$/, authorization: undefined }])
})

t.test('sends the same payment again while its outcome is unknown', async (t) => {
  const shop = await open(t, {
    spoil: (response, credentials) =>
      credentials === 1 ? new Response('gateway', { status: 502 }) : response,
  })
  const before = await chain.balance(payer)
  const ran = await pay(t, [`${shop.url}/x`, '--max', '1', '--json'], WALLET)
  t.equal(new Set(shop.credentials).size, 1)
  t.ok(shop.credentials.length > 1)
  t.equal(await chain.balance(shop.recipient), 5_000n, 'it was charged, once')
  t.ok(before - (await chain.balance(payer)) < 10_000n)
  // mppx refuses the copy of a payment that has been carried out: that says nothing of the first.
  t.equal(ran.code, 5)
  t.match(bill(ran), { status: 402, charged: 'unknown', protocol: 'mpp', transaction: null })
})

t.test('counts an answer with a receipt as paid, whatever its status', async (t) => {
  const shop = await open(t, {
    spoil: (response) =>
      response.status === 402 ? response : new Response('"gone"', { status: 404, headers: response.headers }),
  })
  const ran = await pay(t, [`${shop.url}/x`, '--max', '1', '--json'], WALLET)
  t.equal(ran.code, 5)
  t.match(bill(ran), { status: 404, charged: 'yes', transaction: /^0x[0-9a-f]{64}$/ })
  t.equal(await chain.balance(shop.recipient), 5_000n)
})

t.test('prints an answer without a receipt, with the charge unknown', async (t) => {
  const receipt = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const [name, header] of [
    ['none', undefined],
    ['garbage', '%%%'],
    ['of a failure', receipt({ method: 'tempo', status: 'failed', reference: `0x${'1'.repeat(64)}` })],
    ['with something else for a transaction', receipt({ status: 'success', reference: '\u001b[2Jhello' })],
  ] as const) {
    const shop = await open(t, {
      spoil: (response) => {
        if (header === undefined) response.headers.delete('payment-receipt')
        else response.headers.set('payment-receipt', header)
        return response
      },
    })
    const ran = await pay(t, [`${shop.url}/x`, '--max', '1', '--json'], WALLET)
    t.equal(ran.code, 0, name)
    t.match(bill(ran), { status: 200, charged: 'unknown', transaction: null, body: { sold: true } }, name)
  }
})

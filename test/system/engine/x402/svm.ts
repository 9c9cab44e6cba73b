import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKeyPairSignerFromPrivateKeyBytes, type KeyPairSigner } from '@solana/kit'
import { x402Client, wrapFetchWithPayment } from '@x402/fetch'
import { SOLANA_DEVNET_CAIP2 } from '@x402/svm'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import t, { type Test } from 'tap'
import { encodeBase58 } from '../../../../src/engine/base/base58.ts'
import type { Json, JsonObject } from '../../../../src/engine/base/json.ts'
import { readTransaction } from '../../../../src/engine/chains/svm/transaction.ts'
import type { Fault } from '../../../../src/sandbox/svm/faults.ts'
import { startSvmSale, svmFacilitator, svmTokenAccount, type SvmSale } from '../../../support/svm.ts'
import { bentTransaction, memoWith, secondTransfer, type Bend } from '../../../support/bent-svm.ts'
import { callTool } from '../../../support/mcp.ts'
import { encode, readHeader, type Challenge } from '../../../support/payment.ts'
import { at } from '../../../support/documents.ts'
import { listening } from '../../../support/http.ts'
import { runLine } from '../../../support/run-command.ts'
import { startServer, type RunningServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'
import { openCountingUpstream } from '../../../support/upstream.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/svm/catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../../../fixtures/payments/handlers', import.meta.url))
const PRICE = 10_000n

const sale = await startSvmSale()
t.teardown(() => sale.chain.stop())
const upstream = await openCountingUpstream()
t.teardown(() => upstream.close())

// The service holds the key of the fee payer, whose seed a signer of the official client does not give out.
const seed = randomBytes(32)
const feePayer = await createKeyPairSignerFromPrivateKeyBytes(seed)
await sale.chain.setLamports(feePayer.address, 1_000_000_000n)
const pair = Buffer.concat([
  seed,
  Buffer.from(await crypto.subtle.exportKey('raw', feePayer.keyPair.publicKey)),
])

const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-svm-'))
t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))

function serve(env: Readonly<Record<string, string>>, directory = dataDir): Promise<RunningServer> {
  return startServer({
    args: ['--catalog', CATALOG, '--handlers', HANDLERS],
    dataDir: directory,
    env: {
      HOST: '127.0.0.1',
      BASE_URL: 'https://api.example.com',
      ALLOW_TEST_NETWORKS: '1',
      UPSTREAM_URL: upstream.url,
      PAY_TO: sale.seller,
      ...env,
    },
  })
}

const OWN = { SOLANA_FEE_PAYER_KEY: encodeBase58(pair), RPC_URL_SOLANA_DEVNET: sale.chain.rpcUrl }

function clientOf(buyer: KeyPairSigner): x402Client {
  const scheme = new ExactSvmScheme(buyer, { rpcUrl: sale.chain.rpcUrl })
  return new x402Client().register(SOLANA_DEVNET_CAIP2, scheme)
}

async function earned(): Promise<bigint> {
  const account = await svmTokenAccount(sale.seller)
  const found = await sale.chain.call('getTokenAccountBalance', [account])
  return BigInt(JSON.stringify(at(found, 'value', 'amount')).replaceAll('"', ''))
}

async function offerOf(url: string): Promise<Challenge> {
  return readHeader(await fetch(url), 'PAYMENT-REQUIRED') as unknown as Challenge
}

async function signed(url: string): Promise<string> {
  const challenge = await offerOf(url)
  return encode(
    (await clientOf(sale.buyer).createPaymentPayload(challenge as never)) as unknown as JsonObject,
  )
}

const own = await serve(OWN)
t.teardown(() => own.stop())

t.test('the official client pays over HTTP, and our fee payer settles', async (t) => {
  const before = await earned()
  const response = await wrapFetchWithPayment(fetch, clientOf(sale.buyer))(`${own.url}/paid/work?n=1`)
  t.equal(response.status, 200, await response.clone().text())
  const receipt = readHeader(response, 'PAYMENT-RESPONSE')
  t.match(receipt, {
    success: true,
    network: SOLANA_DEVNET_CAIP2,
    payer: sale.buyer.address,
    amount: '10000',
  })
  t.equal((await earned()) - before, PRICE)
})

t.test('what the fee payer has paid stands in the books, and what it has left in the status', async (t) => {
  const command = async (...words: readonly string[]) =>
    JSON.parse((await runLine(['payments', ...words, '--json', '--data-dir', own.dataDir])).out)
  const [{ payment, transaction }] = await command('list')
  const transaction_page = `https://explorer.solana.com/tx/${transaction}?cluster=devnet`
  const paid = { fee: /^0\.00001\d* SOL$/, gas_cost_wei: /^1\d{13}$/, transaction_page }
  t.match(await command('show', payment), paid)
  t.match(await command('export'), [paid])
  const status: Json = JSON.parse(await (await fetch(`${own.url}/status.json`)).text())
  t.match(at(status, 'networks'), [
    {
      network: SOLANA_DEVNET_CAIP2,
      status: 'open',
      coin: 'SOL',
      signers: [{ address: feePayer.address, balance: /^[01]\.?\d*$/ }],
      gas_lost_last_hour: '0',
    },
  ])
})

t.test('an offer names a recent block, with which the official client signs', async (t) => {
  const url = `${own.url}/paid/work?n=13`
  const named = (challenge: Challenge) => at({ ...challenge.accepts[0]?.extra }, 'recentBlockhash')
  await until('a block is named', async () => named(await offerOf(url)) !== undefined)
  const challenge = await offerOf(url)
  t.match(challenge.accepts[0]?.extra, { lastValidBlockHeight: /^\d+$/ })
  const payload = (await clientOf(sale.buyer).createPaymentPayload(
    challenge as never,
  )) as unknown as JsonObject
  const transaction = at(payload, 'payload', 'transaction')
  const read = readTransaction(Buffer.from(typeof transaction === 'string' ? transaction : '', 'base64'))
  t.match(read, { transaction: { blockhash: named(challenge) } })
  const answer = await fetch(url, { headers: { 'payment-signature': encode(payload) } })
  t.equal(answer.status, 200)
  const { content } = await callTool(`${own.url}/mcp/game`, 'work', { n: 13 })
  t.type(at(content as Json, 'accepts', 0, 'extra', 'recentBlockhash'), 'string', 'to a tool call, too')
})

/** Buys a call of the tool with the official client, and sends the same payment again. */
async function buyTool(t: Test, shop: RunningServer, n: number): Promise<void> {
  const before = await earned()
  const { content } = await callTool(`${shop.url}/mcp/game`, 'work', { n })
  const payload = await clientOf(sale.buyer).createPaymentPayload(content as never)
  const meta = { 'x402/payment': payload as unknown as JsonObject }
  const answer = await callTool(`${shop.url}/mcp/game`, 'work', { n }, { meta })
  t.notOk(answer.isError, answer.text)
  t.match(answer.meta['x402/payment-response'], { success: true, payer: sale.buyer.address })
  t.equal((await earned()) - before, PRICE)
  const again = await callTool(`${shop.url}/mcp/game`, 'work', { n }, { meta })
  t.same(again.text, answer.text, 'the same payment gets the same answer again')
  t.equal((await earned()) - before, PRICE)
}

t.test('the official client pays for a tool', (t) => buyTool(t, own, 2))

t.test('fifty copies of a payment are one charge and one run', async (t) => {
  const url = `${own.url}/paid/work?n=3`
  const header = await signed(url)
  const [before, runs] = [await earned(), upstream.runs()]
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => fetch(url, { headers: { 'payment-signature': header } })),
  )
  const bodies = await Promise.all(answers.map((answer) => answer.text()))
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(new Set(bodies).size, 1)
  t.equal((await earned()) - before, PRICE)
  t.equal(upstream.runs() - runs, 1)
})

t.test(
  'a payment that is sent again gets its answer again, also from a process that was killed',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'ratecard-svm-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const first = await serve(OWN, folder)
    const header = await signed(`${first.url}/paid/work?n=4`)
    const before = await earned()
    const pay = ({ url }: RunningServer) =>
      fetch(`${url}/paid/work?n=4`, { headers: { 'payment-signature': header } }).then((answer) =>
        answer.text(),
      )
    const answer = await pay(first)
    t.equal(await pay(first), answer)
    await first.kill()
    const second = await serve(OWN, folder)
    t.teardown(() => second.stop())
    t.equal(await pay(second), answer)
    t.equal((await earned()) - before, PRICE)
  },
)

t.test('a transaction that a node drops is sent again until it is in a block', async (t) => {
  const [url, before] = [`${own.url}/paid/work?n=5`, await earned()]
  const header = await signed(url)
  await sale.chain.setFault({ kind: 'drop', method: 'sendTransaction', times: 1 })
  const response = await fetch(url, { headers: { 'payment-signature': header } })
  await sale.chain.clearFaults()
  t.equal(response.status, 200)
  t.equal((await earned()) - before, PRICE)
})

t.test('a lost reply of the node leaves one charge', async (t) => {
  const [url, before] = [`${own.url}/paid/work?n=6`, await earned()]
  const header = await signed(url)
  await sale.chain.setFault({ kind: 'lose', method: 'sendTransaction', times: 1 })
  const response = await fetch(url, { headers: { 'payment-signature': header } })
  await sale.chain.clearFaults()
  t.equal(response.status, 200)
  t.equal((await earned()) - before, PRICE)
})

/** What a node does wrong while one payment is sent, as often as it takes. */
const TROUBLES: Readonly<Record<string, readonly Fault[]>> = {
  'is slow': ['simulateTransaction', 'getLatestBlockhash', 'sendTransaction', 'getSignatureStatuses'].map(
    (method) => ({ kind: 'slow', method, ms: 400, times: 2 }),
  ),
  'loses its answers': ['simulateTransaction', 'sendTransaction', 'getSignatureStatuses'].map((method) => ({
    kind: 'lose',
    method,
    times: 2,
  })),
  'forgets a signature': [{ kind: 'omit', method: 'getSignatureStatuses', times: 5 }],
  'says that the payer has no tokens': [{ kind: 'omit', method: 'getAccountInfo', times: 1 }],
  'refuses what is sent': [{ kind: 'refuse', method: 'sendTransaction', times: 2 }],
  'says that it has taken what it drops': [{ kind: 'drop', method: 'sendTransaction', times: 2 }],
}

for (const [place, [what, faults]] of Object.entries(TROUBLES).entries())
  t.test(`a node that ${what} leaves one charge and one answer`, async (t) => {
    const [url, before, runs] = [`${own.url}/paid/work?n=${20 + place}`, await earned(), upstream.runs()]
    const header = await signed(url)
    for (const fault of faults) await sale.chain.setFault(fault)
    t.teardown(() => sale.chain.clearFaults())
    await until('the payment is answered', async () => {
      const answer = await fetch(url, { headers: { 'payment-signature': header } })
      const text = await answer.text()
      if (answer.status === 200) return true
      const { charged } = JSON.parse(text)
      t.not(charged, 'yes', 'nothing is charged without an answer')
      return false
    })
    t.equal((await earned()) - before, PRICE)
    t.equal(upstream.runs() - runs, 1)
  })

/** A payment with this transaction; `change`: what it repeats of the offer differently. */
async function payBent(
  path: string,
  transaction: string,
  change: (accepted: Challenge['accepts'][number]) => JsonObject = (accepted) => accepted,
): Promise<JsonObject> {
  const { accepts, resource } = await offerOf(own.url + path)
  const [offer] = accepts
  if (offer === undefined) throw new Error('nothing is offered')
  const header = encode({ x402Version: 2, resource, accepted: change(offer), payload: { transaction } })
  const response = await fetch(own.url + path, { headers: { 'payment-signature': header } })
  const body = (await response.json()) as JsonObject
  const { code, charged } = body
  return { status: response.status, code: code ?? null, charged: charged ?? null }
}

const stranger = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
const LAYOUT = 'invalid_exact_svm_payload_transaction'
const BENT: readonly { readonly what: string; readonly bend: () => Promise<Bend>; readonly code: string }[] =
  [
    {
      what: 'amount',
      bend: async () => ({ amount: 9_999n }),
      code: 'invalid_exact_svm_payload_amount_mismatch',
    },
    {
      what: 'mint',
      bend: async () => ({ mint: stranger.address }),
      code: 'invalid_exact_svm_payload_mint_mismatch',
    },
    {
      what: 'destination',
      bend: async () => ({ payee: stranger.address }),
      code: 'invalid_exact_svm_payload_recipient_mismatch',
    },
    { what: 'extra instruction', bend: async () => ({ last: [await secondTransfer(sale)] }), code: LAYOUT },
    {
      what: 'fee payer as authority',
      bend: async () => ({ authority: feePayer }),
      code: LAYOUT,
    },
    {
      what: 'fee payer in an instruction',
      bend: async () => ({ last: [memoWith(feePayer.address)] }),
      code: LAYOUT,
    },
    { what: 'high compute price', bend: async () => ({ unitPrice: 5_000_001n }), code: LAYOUT },
    { what: 'high compute limit', bend: async () => ({ units: 1_400_000 }), code: LAYOUT },
    { what: 'second memo', bend: async () => ({ memos: ['one', 'two'] }), code: LAYOUT },
    {
      what: 'other fee payer',
      bend: async () => ({ feePayer: stranger.address }),
      code: 'invalid_exact_svm_fee_payer_mismatch',
    },
  ]

t.test('a bent transaction is refused, uncharged, and costs the fee payer nothing', async (t) => {
  const lamports = await sale.chain.call('getBalance', [feePayer.address])
  const [before, runs] = [await earned(), upstream.runs()]
  for (const { what, bend, code } of BENT) {
    const transaction = await bentTransaction(sale, feePayer.address, await bend())
    t.same(await payBent('/paid/work?n=7', transaction), { status: 402, code, charged: 'no' }, what)
  }
  const sound = await bentTransaction(sale, feePayer.address)
  const unsigned = Buffer.from(sound, 'base64')
  unsigned.fill(0, 1 + 64, 1 + 128)
  t.same(
    await payBent('/paid/work?n=7', unsigned.toString('base64')),
    { status: 402, code: 'invalid_exact_svm_payload_signature_invalid', charged: 'no' },
    'unsigned',
  )
  t.same(
    await payBent('/paid/work?n=7', sound, (offer) => ({
      ...offer,
      network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    })),
    { status: 402, code: 'no_matching_requirements', charged: 'no' },
    'other network',
  )
  t.same(
    await payBent('/paid/work?n=7', Buffer.from(sound, 'base64').subarray(0, -2).toString('base64')),
    { status: 400, code: 'invalid_payload', charged: 'no' },
    'cut off',
  )
  const poor = await bentTransaction({ ...sale, buyer: stranger }, feePayer.address)
  t.match(await payBent('/paid/work?n=7', poor), { status: 402, charged: 'no' }, 'no money')
  await sale.chain.advance(160)
  t.same(
    await payBent('/paid/work?n=7', sound),
    { status: 402, code: 'invalid_exact_svm_blockhash_expired', charged: 'no' },
    'expired',
  )
  const { blockhash } = at(
    await sale.chain.call('getLatestBlockhash', [{ commitment: 'confirmed' }]),
    'value',
  ) as JsonObject
  t.match((await offerOf(own.url + '/paid/work')).accepts[0]?.extra, { recentBlockhash: blockhash })
  t.equal(await earned(), before)
  t.equal(upstream.runs(), runs)
  t.same(at(await sale.chain.call('getBalance', [feePayer.address]), 'value'), at(lamports, 'value'))
})

t.test(
  'a wallet with the money for one call pays one of two at once, and the other one costs nothing',
  async (t) => {
    const buyer = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
    await sale.chain.giveTokens(buyer.address, PRICE)
    const pay = wrapFetchWithPayment(fetch, clientOf(buyer))
    const [before, lamports] = [await earned(), await sale.chain.call('getBalance', [feePayer.address])]
    const answers = await Promise.all([11, 12].map((n) => pay(`${own.url}/paid/work?n=${n}`)))
    t.same(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 402],
    )
    const refused = answers.find(({ status }) => status === 402)
    t.match(await refused?.json(), { code: 'invalid_exact_svm_insufficient_balance', charged: 'no' })
    t.equal((await earned()) - before, PRICE)
    const left = await sale.chain.call('getBalance', [feePayer.address])
    // Two signatures, and a priority fee of one lamport at most.
    t.equal(Number(at(lamports, 'value')) - Number(at(left, 'value')), 10_001)
  },
)

t.test('work that outlives a transaction is paid for first, and the offer says so', async (t) => {
  const long = await offerOf(`${own.url}/paid/long-work?n=8`)
  const short = await offerOf(`${own.url}/paid/work?n=8`)
  t.match(long.accepts[0]?.extra, { feePayer: feePayer.address, paymentFlow: 'upfront' })
  t.notHas(short.accepts[0]?.extra, { paymentFlow: 'upfront' })
  const response = await wrapFetchWithPayment(fetch, clientOf(sale.buyer))(`${own.url}/paid/long-work?n=8`)
  t.equal(response.status, 200)
})

/** The official facilitator behind HTTP; `answer`: what becomes of its answers to POST /settle. */
async function openFacilitator(t: Test, sold: SvmSale) {
  const facilitator = svmFacilitator(sold)
  const way = { lost: false, settles: 0 }
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const asked = body === '' ? undefined : JSON.parse(body)
      const reply = (value: object): void =>
        void response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
      if (request.url === '/supported') {
        const extra = facilitator.getExtra(SOLANA_DEVNET_CAIP2)
        const kind = { x402Version: 2, scheme: 'exact', network: SOLANA_DEVNET_CAIP2, extra }
        return reply({ kinds: [kind], extensions: [], signers: {} })
      }
      if (request.url === '/verify')
        return reply(await facilitator.verify(asked.paymentPayload, asked.paymentRequirements))
      way.settles += 1
      const settled = await facilitator.settle(asked.paymentPayload, asked.paymentRequirements)
      if (way.lost) return void response.socket?.destroy()
      return reply(settled)
    })
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  return Object.assign(way, { url })
}

for (const node of ['without a node of ours', 'with a node of ours'] as const)
  t.test(`a facilitator settles ${node}`, async (t) => {
    const facilitator = await openFacilitator(t, sale)
    const folder = mkdtempSync(join(tmpdir(), 'ratecard-svm-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const rpc = node === 'with a node of ours' ? { RPC_URL_SOLANA_DEVNET: sale.chain.rpcUrl } : {}
    const server = await serve({ FACILITATOR_URL: facilitator.url, ...rpc }, folder)
    t.teardown(() => server.stop())
    const url = `${server.url}/paid/work?n=9`
    const before = await earned()
    // The fee payer is known when the facilitator has been asked.
    await until(
      'Solana is offered',
      async () => (await offerOf(url).catch(() => undefined))?.accepts.length === 1,
    )
    t.match((await offerOf(url)).accepts[0]?.extra, { feePayer: sale.feePayer.address })
    const challenge = await offerOf(url)
    const header = encode(
      (await clientOf(sale.buyer).createPaymentPayload(challenge as never)) as unknown as JsonObject,
    )
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => fetch(url, { headers: { 'payment-signature': header } })),
    )
    const bodies = await Promise.all(answers.map((answer) => answer.text()))
    t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
    t.equal(new Set(bodies).size, 1)
    t.equal((await earned()) - before, PRICE)
    t.equal(facilitator.settles, 1)
    await buyTool(t, server, 11)
    t.equal(facilitator.settles, 2)
    if (node === 'without a node of ours') return
    facilitator.lost = true
    const paid = await wrapFetchWithPayment(fetch, clientOf(sale.buyer))(`${server.url}/paid/work?n=10`)
    t.equal(paid.status, 200, 'the chain shows what a lost answer does not')
    t.equal((await earned()) - before, 3n * PRICE)
  })

t.test('a seller without a token account is told how to create it, and nothing is offered', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-svm-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const payee = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
  const server = await serve({ ...OWN, PAY_TO: payee.address }, folder)
  t.teardown(() => server.stop())
  await server.said(new RegExp(`spl-token create-account \\S+ --owner ${payee.address}`))
})

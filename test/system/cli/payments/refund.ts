import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openMetrics } from '../../../../src/cli/metrics.ts'
import { readPayment } from '../../../../src/engine/http/live-pages.ts'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { cleanUp } from '../../../../src/engine/ledger/clean-up.ts'
import type { PaymentLease } from '../../../../src/engine/ledger/lease.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { onchainClient, startBase } from '../../../support/base-chain.ts'
import {
  HOUR,
  openLedgerFixture,
  purchaseOf,
  randomHash,
  receiptOf,
  sell,
  sellMetered,
  type LedgerFixture,
} from '../../../support/ledger-fixture.ts'
import { runLine, type Ran } from '../../../support/run-command.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import { askNode, openRpcProxy } from '../../../support/rpc-proxy.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { MAIN, nodeCommand, readSandboxFile, runProgram, startServer } from '../../../support/server.ts'

const chain = await startBase()
t.teardown(() => chain.stop())

const key = randomKey()
await chain.mint(addressOf(key), 1_000_000n)
await chain.setGas(addressOf(key), 10n ** 18n)

function refund({ dataDir }: LedgerFixture, words: readonly string[], variables = {}): Promise<Ran> {
  const line = ['payments', 'refund', '--data-dir', dataDir, ...words]
  const settings = { REFUND_PRIVATE_KEY: key, RPC_URL_8453: chain.rpcUrl, PAY_TO: addressOf(key) }
  return runLine(line, { variables: { ...settings, ...variables } })
}

/** Charged first, for work that fails whenever it is run. */
async function bookDue(fixture: LedgerFixture): Promise<{ readonly id: string; readonly payer: Hex }> {
  const payer = addressOf(randomKey())
  const purchase = purchaseOf({ settle: 'upfront', payer })
  const fail = async (lease: PaymentLease): Promise<void> => {
    await lease.settle(receiptOf(purchase))
    await lease.refund({ kind: 'due', reason: 'not_found' })
  }
  const { id } = await fixture.record(purchase, Date.now() - HOUR, fail)
  return { id, payer }
}

/** Booked as refunded in a transaction that is on no chain. */
async function bookUnfit(fixture: LedgerFixture): Promise<{ readonly payment: string }> {
  const purchase = purchaseOf({ settle: 'upfront' })
  const { id } = await fixture.record(purchase, Date.now() - HOUR, async (lease) => {
    await lease.settle(receiptOf(purchase))
    await lease.refund({ kind: 'sent', hash: randomHash() })
  })
  return { payment: id }
}

t.test('sends exactly the refunds that are due', async (t) => {
  const fixture = openLedgerFixture(t)
  const due = [await bookDue(fixture), await bookDue(fixture)]
  const delivered = purchaseOf()
  await fixture.record(delivered, Date.now() - HOUR, sell(receiptOf(delivered)))
  const dry = await refund(fixture, ['--due', '--dry-run'], { REFUND_PRIVATE_KEY: '' })
  t.equal(dry.code, 0)
  for (const { id, payer } of due) t.match(dry.out, `${id}: would send 0.005000 USDC to ${payer}`)
  t.match(await refund(fixture, ['--due', '--max', '0.009']), {
    code: 1,
    err: /0\.010000 USD, more than --max/,
  })
  for (const { payer } of due) t.equal(await chain.balance(payer), 0n)
  const sent = await refund(fixture, ['--due', '--max', '0.01', '--json'])
  t.equal(sent.code, 0, sent.err)
  t.match(
    JSON.parse(sent.out),
    due.map(({ id }) => ({
      payment: id,
      result: 'sent',
      amount: '0.005000',
      transaction: /^0x[0-9a-f]{64}$/,
    })),
  )
  for (const { payer } of due) t.equal(await chain.balance(payer), 5000n)
  t.equal(await chain.balance(delivered.payer as Hex), 0n)
  t.match(await refund(fixture, ['--due']), { code: 0, out: 'no refund is due' })
  t.notMatch(sent.out + sent.err + dry.out, key, 'the key is not printed')
})

t.test('refunds one payment by its id, also one that was delivered', async (t: Test) => {
  const fixture = openLedgerFixture(t)
  const purchase = purchaseOf({ payer: addressOf(randomKey()) })
  const { id } = await fixture.record(purchase, Date.now() - HOUR, sell(receiptOf(purchase)))
  t.match(await refund(fixture, [id]), { code: 0, out: new RegExp(`^${id}: sent 0.005000 USDC to `) })
  t.equal(await chain.balance(purchase.payer as Hex), 5000n)
  t.match(await refund(fixture, [id]), { code: 1, out: /not refunded: it was refunded before, in 0x/ })
  t.equal(await chain.balance(purchase.payer as Hex), 5000n)
})

t.test('shows what is owed and what was sent to the buyer, in the books and in the metrics', async (t) => {
  const fixture = openLedgerFixture(t)
  const [first, second] = [await bookDue(fixture), await bookDue(fixture)]
  const past = purchaseOf({ settle: 'upfront', redeliver: HOUR / 2 })
  const { id: late } = await fixture.record(past, Date.now() - HOUR, (lease) => lease.settle(receiptOf(past)))
  const { payment } = await bookUnfit(fixture)
  t.equal((await refund(fixture, [first.id])).code, 0)

  const command = async (...words: readonly string[]): Promise<string> => {
    const { out } = await runLine(['payments', ...words, '--data-dir', fixture.dataDir], {
      variables: { RPC_URL_8453: chain.rpcUrl, PAY_TO: addressOf(key) },
    })
    return out
  }
  const exported = JSON.parse(await command('export', '--json')) as {
    payment: string
    refund: string
    refund_transaction: string
    refund_sender: string
  }[]
  const row = (id: string) => exported.find((each) => each.payment === id)
  const sender = addressOf(key)
  t.match(row(first.id), {
    refund: 'sent',
    refund_transaction: /^0x[0-9a-f]{64}$/,
    refund_sender: sender,
  })
  t.match(row(second.id), { refund: 'due', refund_transaction: '', refund_sender: '' })
  const listed = JSON.parse(await command('list', '--json')) as readonly JsonObject[]
  const sentBack = { state: 'sent', transaction: row(first.id)?.refund_transaction, sender }
  t.match(
    listed.find((each) => each['payment'] === first.id),
    { refund: sentBack },
  )
  t.match(
    listed.find((each) => each['payment'] === second.id),
    { refund: { state: 'due', reason: 'not_found' } },
  )
  t.match(JSON.parse(await command('show', first.id, '--json')), { refund: sentBack })
  t.match(await command('show', first.id), `sender ${sender}`)
  t.match(row(late), { refund: 'due' })
  t.match(JSON.parse(await command('list', '--totals', '--json')), {
    revenue: { payments: 4 },
    refunded: { payments: 2, money: [{ amount: '0.010000' }] },
    refunds_due: { payments: 2, money: [{ amount: '0.010000' }] },
  })
  const { networks } = JSON.parse(await command('reconcile', '--json')) as { networks: readonly JsonObject[] }
  t.match(networks, [
    {
      refunds: { sent: { count: 1, amount: '0.005000' }, due: { count: 3, amount: '0.015000' } },
      differences: [
        {},
        {},
        {},
        {},
        { kind: 'refund_missing', ledger: { payment }, chain: { shows: 'no_refund' } },
      ],
    },
  ])
  t.match(await command('reconcile'), /^ {2}refunds: 1 \(0\.005000 USDC\) sent, 3 \(0\.015000 USDC\) due$/m)

  const ledger = await openLmdbLedger(join(fixture.dataDir, 'ledger'))
  t.teardown(() => ledger.close())
  const told = async (id: string): Promise<unknown> =>
    JSON.parse(String((await readPayment(ledger, { id, digest: undefined })).body))
  const { refund_transaction: transaction } = row(first.id) ?? {}
  t.match(await told(first.id), { charged: 'yes', refund: 'sent', refund_transaction: transaction })
  t.match(await told(second.id), { charged: 'yes', refund: 'due', next: /the operator sends the money back/ })
  t.match(await told(late), { charged: 'yes', refund: 'due', next: /the operator sends the money back/ })
  await cleanUp({ ledger, now: Date.now })
  const metrics = await openMetrics({
    others: undefined,
    ledger,
    now: Date.now,
    figures: () => new Map(),
    health: async () => [],
    revision: () => 'r1',
    isRefused: () => false,
    denyLists: () => [],
    rpcUrls: {},
    ledgerFile: undefined,
  })
  const { text } = await metrics.read()
  t.match(text, /^ratecard_refunds_due\{network="eip155:8453",token="USDC"\} 2$/m)
  t.match(text, /^ratecard_refunds_due_amount\{network="eip155:8453",token="USDC"\} 0\.01$/m)
})

t.test('sends back what a metered payment was charged, not what it had authorized', async (t) => {
  const fixture = openLedgerFixture(t)
  const payer = addressOf(randomKey())
  const purchase = purchaseOf({ amount: '50000', payer })
  const usage = [{ part: 'bytes_of answer', count: 700, amount: '0.0007' }]
  const sale = sellMetered({ ...receiptOf(purchase), amount: '700' }, usage)
  const { id } = await fixture.record(purchase, Date.now() - HOUR, sale)
  t.match(await refund(fixture, [id]), { code: 0 })
  t.equal(await chain.balance(payer), 700n)
  t.match(await refund(fixture, [id]), { code: 1 })
  t.equal(await chain.balance(payer), 700n)
})

t.test(
  'reconcile finds a refund that arrived after the command had ended, and the command records it',
  async (t) => {
    const fixture = openLedgerFixture(t)
    const { id } = await bookDue(fixture)
    await refund(fixture, [id])
    const [record] = await fixture.all()
    if (record?.refund?.kind !== 'sent') throw new Error('it is sent')
    await fixture.amend(record, {
      refund: { kind: 'sending', hash: record.refund.hash, raw: '0x00', nonce: 0 },
    })
    const words = ['payments', 'reconcile', '--data-dir', fixture.dataDir]
    const { code, out } = await runLine(words, {
      variables: { RPC_URL_8453: chain.rpcUrl, PAY_TO: addressOf(key) },
    })
    t.equal(code, 2)
    t.match(out, `refunded but not booked: ${id}`)
    t.match(out, `The chain shows a refund of 0.005000 USDC to ${record.payer} in ${record.refund.hash}`)
    t.match(await refund(fixture, [id]), {
      code: 0,
      out: new RegExp(`sent 0.005000 USDC .* in ${record.refund.hash}`),
    })
  },
)

t.test('reconcile takes a transfer of the same amount for no refund', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id, payer } = await bookDue(fixture)
  await onchainClient(chain).drain(addressOf(key), payer, 5000n)
  const { result } = await askNode(chain.rpcUrl, 'eth_getBlockByNumber', ['latest', false])
  const [hash = ''] = (result?.['transactions'] ?? []) as readonly string[]
  const [record] = await fixture.all()
  if (record === undefined) throw new Error('it is booked')
  await fixture.amend(record, { refund: { kind: 'sent', hash, sender: addressOf(key) } })
  const words = ['payments', 'reconcile', '--json', '--data-dir', fixture.dataDir]
  const { out } = await runLine(words, { variables: { RPC_URL_8453: chain.rpcUrl, PAY_TO: addressOf(key) } })
  const { networks } = JSON.parse(out) as { networks: readonly { differences: readonly JsonObject[] }[] }
  const missing = { kind: 'refund_missing', ledger: { payment: id }, chain: { shows: 'no_refund' } }
  t.match(networks.flatMap(({ differences }) => differences).at(-1), missing)
})

t.test('goes on with the refund of a killed command under another key: one refund', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id, payer } = await bookDue(fixture)
  const other = randomKey()
  await chain.mint(addressOf(other), 1_000_000n)
  await chain.setGas(addressOf(other), 10n ** 18n)
  const node = await openRpcProxy(chain.rpcUrl)
  t.teardown(() => node.close())
  const onchain = onchainClient(chain)
  await onchain.setMining('manual')
  t.teardown(() => onchain.setMining('automatic'))
  const broadcast = new Promise<void>((resolve) => {
    node.onCall(async (method) => {
      if (method === 'eth_getTransactionReceipt') resolve()
    })
  })
  const env = { PATH: process.env['PATH'] ?? '', REFUND_PRIVATE_KEY: key, RPC_URL_8453: node.url }
  const line = [MAIN, 'payments', 'refund', id, '--data-dir', fixture.dataDir]
  const command = spawn(...nodeCommand(line), { env, stdio: 'ignore' })
  const ended = once(command, 'exit')
  await broadcast
  command.kill('SIGKILL')
  await ended
  t.equal(await chain.balance(payer), 0n, 'no block has it')
  await onchain.setMining('automatic')
  const again = (): Promise<Ran> => refund(fixture, [id], { REFUND_PRIVATE_KEY: other })
  let ran = await again()
  // The lease of the killed command ends by itself.
  while (ran.out.includes('a server is working on this payment')) {
    await delay(500)
    ran = await again()
  }
  t.match(ran, { code: 0, out: /: sent 0\.005000 USDC to / })
  t.equal(await chain.balance(payer), 5000n)
  t.match((await fixture.all())[0]?.refund, { kind: 'sent', sender: addressOf(key) })
})

t.test('names the missing settings before it sends anything', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await bookDue(fixture)
  t.match(await refund(fixture, []), { code: 64, err: /name one payment by its id, or --due/ })
  t.match(await refund(fixture, [id, '--due']), { code: 64 })
  t.match(await refund(fixture, ['pay_aaaaaaaaaaaaaaaaaaaaaa']), { code: 64, err: /has no payment pay_a/ })
  t.match(await refund(fixture, [id], { REFUND_PRIVATE_KEY: '' }), {
    code: 64,
    err: /REFUND_PRIVATE_KEY is not set/,
  })
  t.match(await refund(fixture, [id, '--max', 'all']), { code: 64, err: /--max takes dollars/ })
  t.match(await refund(fixture, [id], { RPC_URL_8453: '' }), { code: 1, out: /RPC_URL_8453 is not set/ })
})

const SANDBOX_SHOP = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] }, mpp: { method: tempo, intent: charge, chain: 4217, currency: '0x20C000000000000000000000b9537d11c60E8b50' } }
`

t.test('refunds payments of the sandbox without a key of the operator', async (t) => {
  const { catalog, handlers } = writeShop(
    t,
    '  /paid/greet: { price: 0.01, summary: Greets, parameters: { name: { type: string, default: Ann } }, example: { greeting: Hello } }\n',
    SANDBOX_SHOP,
  )
  const server = await startServer({ args: ['--sandbox', '--catalog', catalog, '--handlers', handlers] })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const onchain = onchainClient(evm)
  const payer = addressOf(evm.payerKey)
  for (const protocol of ['x402', 'mpp']) {
    const argv = ['pay', '/paid/greet', '--protocol', protocol, '--max', '0.01', '--json']
    const { stdout } = await runProgram(argv, { DATA_DIR: server.dataDir })
    const { payment } = JSON.parse(stdout)
    const before = await onchain.received(payer)
    const line = ['payments', 'refund', String(payment), '--sandbox', '--data-dir', server.dataDir]
    t.match(await runLine(line), { code: 0, out: /: sent 0\.010000 \S+ to 0x/ }, protocol)
    if (protocol === 'x402') t.same(await onchain.received(payer), [...before, 10_000n])
    t.match(await runLine(line), { code: 1, out: /it was refunded before/ })
  }
})

import t, { type Test } from 'tap'
import type { PaymentLease } from '../../../src/engine/ledger/lease.ts'
import { startBase } from '../../support/base-chain.ts'
import { HOUR, openBooks, purchaseOf, receiptOf, sell, type Books } from '../../support/books.ts'
import { runLine, type Ran } from '../../support/command.ts'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'

t.setTimeout(90_000)

const chain = await startBase()
t.teardown(() => chain.stop())

const key = randomKey()
await chain.mint(addressOf(key), 1_000_000n)
await chain.setGas(addressOf(key), 10n ** 18n)

function refund({ dataDir }: Books, words: readonly string[], variables = {}): Promise<Ran> {
  const line = ['payments', 'refund', '--data-dir', dataDir, ...words]
  const settings = { REFUND_PRIVATE_KEY: key, RPC_URL_8453: chain.rpcUrl, PAY_TO: addressOf(key) }
  return runLine(line, { variables: { ...settings, ...variables } })
}

/** Charged first, for work that fails whenever it is run. */
async function bookDue(books: Books): Promise<{ readonly id: string; readonly payer: Hex }> {
  const payer = addressOf(randomKey())
  const purchase = purchaseOf({ flow: 'upfront', payer })
  const fail = async (lease: PaymentLease): Promise<void> => {
    await lease.settle(receiptOf(purchase))
    await lease.refund({ kind: 'due', reason: 'not_found' })
  }
  const { id } = await books.book(purchase, Date.now() - HOUR, fail)
  return { id, payer }
}

t.test('sends exactly the refunds that are due', async (t) => {
  const books = openBooks(t)
  const due = [await bookDue(books), await bookDue(books)]
  const delivered = purchaseOf()
  await books.book(delivered, Date.now() - HOUR, sell(receiptOf(delivered)))
  const dry = await refund(books, ['--due', '--dry-run'], { REFUND_PRIVATE_KEY: '' })
  t.equal(dry.code, 0)
  for (const { id, payer } of due) t.match(dry.out, `${id}: would send 0.005000 USDC to ${payer}`)
  t.match(await refund(books, ['--due', '--max', '0.009']), {
    code: 1,
    err: /0\.010000 USD, more than --max/,
  })
  for (const { payer } of due) t.equal(await chain.balance(payer), 0n)
  const sent = await refund(books, ['--due', '--max', '0.01', '--json'])
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
  t.match(await refund(books, ['--due']), { code: 0, out: 'no refund is due' })
  t.notMatch(sent.out + sent.err + dry.out, key, 'the key is not printed')
})

t.test('refunds one payment by its id, also one that was delivered', async (t: Test) => {
  const books = openBooks(t)
  const purchase = purchaseOf({ payer: addressOf(randomKey()) })
  const { id } = await books.book(purchase, Date.now() - HOUR, sell(receiptOf(purchase)))
  t.match(await refund(books, [id]), { code: 0, out: new RegExp(`^${id}: sent 0.005000 USDC to `) })
  t.equal(await chain.balance(purchase.payer as Hex), 5000n)
  t.match(await refund(books, [id]), { code: 1, out: /not refunded: it was refunded before, in 0x/ })
  t.equal(await chain.balance(purchase.payer as Hex), 5000n)
})

t.test('names the missing settings before it sends anything', async (t) => {
  const books = openBooks(t)
  const { id } = await bookDue(books)
  t.match(await refund(books, []), { code: 64, err: /name one payment by its id, or --due/ })
  t.match(await refund(books, [id, '--due']), { code: 64 })
  t.match(await refund(books, ['pay_aaaaaaaaaaaaaaaaaaaaaa']), { code: 64, err: /has no payment pay_a/ })
  t.match(await refund(books, [id], { REFUND_PRIVATE_KEY: '' }), {
    code: 64,
    err: /REFUND_PRIVATE_KEY is not set/,
  })
  t.match(await refund(books, [id, '--max', 'all']), { code: 64, err: /--max takes dollars/ })
  t.match(await refund(books, [id], { RPC_URL_8453: '' }), { code: 1, out: /RPC_URL_8453 is not set/ })
})

import t, { type Test } from 'tap'
import { parse as parseCsv } from 'csv-parse/sync'
import { csvLine } from '../../../../src/cli/payments/export.ts'
import { runLine, type Ran } from '../../../support/run-command.ts'
import {
  HOUR,
  loseOutcome,
  MINUTE,
  openLedgerFixture,
  PAYEE,
  purchaseOf,
  receiptOf,
  SECRETS,
  sell,
  sellMetered,
  USDC,
  type LedgerFixture,
} from '../../../support/ledger-fixture.ts'

const HEAD =
  'payment,taken_at,settled_at,state,protocol,network,token,asset,amount,amount_atomic,payer,payee,transaction,operation,revision,refund,refund_transaction,gas_cost_wei,payments_in_transaction,refund_sender,x402_receipt,ratecard_receipt,authorized,authorized_atomic,usage,fee,transaction_page'

async function exported(t: Test, { dataDir }: LedgerFixture, ...flags: string[]): Promise<Ran> {
  const ran = await runLine(['payments', 'export', '--data-dir', dataDir, ...flags])
  t.equal(ran.code, 0)
  for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret, 'nothing secret is printed')
  return ran
}

t.test('exports one exact row for each charge', async (t) => {
  const fixture = openLedgerFixture(t)
  const at = Date.UTC(2026, 8, 30, 23, 59, 59, 500)
  const sold = purchaseOf({ amount: '12345678', revision: 'rev-9' })
  const receipt = { ...receiptOf(sold), gasCost: '66100000' }
  const record = await fixture.record(sold, at, sell(receipt))
  await fixture.record(purchaseOf(), at, (lease) => lease.void())
  await fixture.record(purchaseOf(), at)
  const { out, err } = await exported(t, fixture)
  t.equal(err, '')
  t.strictSame(out.split('\n'), [
    HEAD,
    [
      record.id,
      '2026-09-30T23:59:59.500Z',
      '2026-09-30T23:59:59.500Z',
      'sent',
      'x402',
      'eip155:8453',
      'USDC',
      USDC,
      '12.345678',
      '12345678',
      sold.payer,
      PAYEE,
      receipt.transaction,
      'util/workday',
      'rev-9',
      '',
      '',
      '66100000',
      '1',
      '',
      '',
      '',
      '12.345678',
      '12345678',
      '',
      '0.0000000000661 ETH',
      `https://basescan.org/tx/${receipt.transaction}`,
    ].join(','),
  ])
})

t.test(
  'exports a charge whose answer is still owed as revenue, and names one in doubt outside of the rows',
  async (t) => {
    const fixture = openLedgerFixture(t)
    const owed = purchaseOf({ settle: 'upfront' })
    const { id } = await fixture.record(owed, Date.now() - HOUR, (lease) => lease.settle(receiptOf(owed)))
    await fixture.record(purchaseOf(), Date.now() - HOUR, loseOutcome('unknown'))
    await fixture.record(purchaseOf(), Date.now() - HOUR, loseOutcome('settling'))
    const { out, err } = await exported(t, fixture)
    t.equal(out.split('\n').length, 2)
    t.match(out, id)
    t.equal(err, 'left out: 2 payments whose charge is unknown')
  },
)

t.test('exports what a metered payment was charged, of what it had authorized, and for what', async (t) => {
  const fixture = openLedgerFixture(t)
  const purchase = purchaseOf({ amount: '50000' })
  const receipt = { ...receiptOf(purchase), amount: '700' }
  const usage = [{ part: 'bytes_of answer', count: 700, amount: '0.0007' }]
  await fixture.record(purchase, Date.now() - HOUR, sellMetered(receipt, usage))
  const [row] = parseCsv((await exported(t, fixture)).out, { columns: true }) as unknown[]
  t.match(row, {
    amount: '0.000700',
    amount_atomic: '700',
    authorized: '0.050000',
    authorized_atomic: '50000',
    usage: 'bytes_of answer = 700: 0.0007 USD',
  })
})

t.test('two adjacent periods export every charge once, by the time of its settlement', async (t) => {
  const fixture = openLedgerFixture(t)
  const meeting = Date.UTC(2026, 9, 1)
  const keys = []
  for (const at of [meeting - 1, meeting, meeting + 1]) {
    const purchase = purchaseOf()
    keys.push((await fixture.record(purchase, at, sell(receiptOf(purchase)))).id)
  }
  const rowsOf = async (...flags: string[]): Promise<string[]> =>
    (JSON.parse((await exported(t, fixture, '--json', ...flags)).out) as { payment: string }[]).map(
      ({ payment }) => payment,
    )
  t.strictSame(await rowsOf('--until', '2026-10-01'), keys.slice(0, 1))
  t.strictSame(await rowsOf('--since', '2026-10-01'), keys.slice(1))
  t.strictSame(await rowsOf('--since', '2026-10-01', '--until', '2026-10-01T00:00:00.001Z'), [keys[1]])
  t.strictSame(await rowsOf(), keys)
})

t.test('exports the same columns as JSON, as an array also when it is empty', async (t) => {
  const fixture = openLedgerFixture(t)
  await fixture.record(purchaseOf(), Date.now())
  t.strictSame(JSON.parse((await exported(t, fixture, '--json')).out), [])
  t.equal((await exported(t, fixture)).out, HEAD)
  const purchase = purchaseOf()
  await fixture.record(purchase, Date.now() - 1, sell(receiptOf(purchase)))
  const [row = {}] = JSON.parse((await exported(t, fixture, '--json')).out) as object[]
  t.equal(Object.keys(row).join(','), HEAD)
})

t.test('escapes formulas that a stranger has put into a payment', async (t) => {
  const fixture = openLedgerFixture(t)
  const nasty = ['=HYPERLINK("http://evil","x")', '+1', '-1', '@SUM(A1)', 'a,"b"', '\t=1', 'x\n=2', "'quoted"]
  for (const transaction of nasty) {
    const purchase = purchaseOf()
    await fixture.record(purchase, Date.now() - MINUTE, sell(receiptOf(purchase, transaction)))
  }
  const { out } = await exported(t, fixture)
  const rows = parseCsv(out, { columns: true }) as Record<string, string>[]
  t.equal(rows.length, nasty.length)
  for (const row of rows) for (const cell of Object.values(row)) t.notMatch(cell, /^[=+\-@\t\r]/)
  const told = rows.map((row) => row['transaction'])
  t.ok(told.includes('a,"b"'), 'quotes and commas stay what they are')
  t.ok(told.includes(`'=HYPERLINK("http://evil","x")`), 'a formula is text')
  t.equal(csvLine(['\t=1', '\r=1', '=1', 'a\nb', 'plain']), `"'\t=1","'\r=1","'=1","a\nb",plain`)
})

t.test('refuses wrong flags', async (t) => {
  for (const [flags, says] of [
    [['--until', 'soon'], /--until takes/],
    [['--since', '1h', '--until', '2h'], /--until has to be later than --since/],
  ] as const) {
    t.match(await runLine(['payments', 'export', ...flags]), { code: 64, out: '', err: says })
  }
})

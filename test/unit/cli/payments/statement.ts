import t, { type Test } from 'tap'
import { parse as parseCsv } from 'csv-parse/sync'
import { runLine, type Ran } from '../../../support/run-command.ts'
import {
  loseOutcome,
  openLedgerFixture,
  purchaseOf,
  randomHash,
  receiptOf,
  SECRETS,
  sell,
  USDC,
  type LedgerFixture,
} from '../../../support/ledger-fixture.ts'

const START = Date.UTC(2026, 9, 1)
const END = Date.UTC(2026, 10, 1)
const PATH_USD = '0x20c0000000000000000000000000000000000000'

async function statement(t: Test, { dataDir }: LedgerFixture, ...words: string[]): Promise<Ran> {
  const ran = await runLine(['payments', 'statement', ...words, '--data-dir', dataDir])
  t.equal(ran.code, 0, ran.err)
  for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret)
  return ran
}

/** Sales around and in October 2026, two of them refunded, one of these in November. */
async function fill(t: Test): Promise<LedgerFixture> {
  const fixture = openLedgerFixture(t)
  const sellAt = async (at: number, amount: string, sentAt?: number, changes = {}): Promise<void> => {
    const purchase = purchaseOf({ amount, ...changes })
    await fixture.record(purchase, at, async (lease) => {
      await sell({ ...receiptOf(purchase), ...('network' in changes ? {} : { gasCost: '100000000000' }) })(
        lease,
      )
      if (sentAt !== undefined) await lease.refund({ kind: 'sent', hash: randomHash(), sentAt })
    })
  }
  await sellAt(START - 1, '1000000', START)
  await sellAt(START, '5000')
  await sellAt(START + 1, '7000', END)
  await sellAt(END - 1, '10000')
  await sellAt(END, '2000000')
  await sellAt(START + 5, '3000', undefined, { network: 'eip155:42431', asset: PATH_USD, protocol: 'mpp' })
  await fixture.record(purchaseOf(), START + 9, loseOutcome('unknown'))
  await fixture.record(purchaseOf(), START + 9, (lease) => lease.void())
  return fixture
}

t.test('sums up one month by network and asset, with refunds and gas as rows of their own', async (t) => {
  const { out, err } = await statement(t, await fill(t), '2026-10', '--csv', '--coin-price', 'ETH=3000.5')
  t.strictSame(out.split('\n'), [
    'month,network,token,asset,kind,payments,amount,unit,usd',
    `2026-10,eip155:42431,PathUSD,${PATH_USD},sales,1,0.003000,PathUSD,0.003000`,
    `2026-10,eip155:8453,USDC,${USDC},sales,3,0.022000,USDC,0.022000`,
    `2026-10,eip155:8453,USDC,${USDC},refunds,1,1.000000,USDC,1.000000`,
    `2026-10,eip155:8453,USDC,${USDC},gas,3,0.0000003,ETH,0.000900`,
  ])
  t.match(err, /left out: 1 payment whose charge is unknown/)
  t.notMatch(err, /coin-price/)
})

t.test('shows a person a month within 80 columns, Solana among its networks', async (t) => {
  const fixture = await fill(t)
  const solana = {
    network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  }
  const purchase = purchaseOf({ amount: '5000', ...solana })
  await fixture.record(purchase, START + 2, sell(receiptOf(purchase)))
  const argv = ['payments', 'statement', '2026-10', '--data-dir', fixture.dataDir]
  const { out } = await runLine(argv, { reader: 'person', variables: { NO_COLOR: '1' } })
  t.match(out, /^TOKEN +KIND +PAYMENTS +AMOUNT +USD +NETWORK$/m)
  t.match(out, /^USDC +sales +1 +0\.005000 +0\.005000 +solana:5eykt4UsFv8P8NJdTREpY1vz/m)
  for (const line of out.split('\n')) t.ok(line.length <= 80, line)
})

t.test('shows gas in the coin alone, where no price is given, and says how to give one', async (t) => {
  const fixture = await fill(t)
  const { out, err } = await statement(t, fixture, '2026-10')
  t.match(out, /^MONTH +NETWORK +TOKEN +ASSET +KIND +PAYMENTS +AMOUNT +UNIT +USD$/m)
  t.match(out, /gas +3 +0\.0000003 +ETH$/m)
  t.match(err, /add --coin-price ETH=PRICE/)
  const csv = await statement(t, fixture, '2026-10', '--csv', '--coin-price', 'POL=1')
  const rows = parseCsv(csv.out, { columns: true }) as Record<string, string>[]
  t.strictSame(
    rows.filter(({ kind }) => kind === 'gas').map(({ usd }) => usd),
    [''],
  )
})

t.test('counts every sale and refund in one month', async (t) => {
  const fixture = await fill(t)
  const sums = new Map<string, number>()
  for (const month of ['2026-09', '2026-10', '2026-11']) {
    const { out } = await statement(t, fixture, month, '--csv')
    for (const { kind = '', payments } of parseCsv(out, { columns: true }) as Record<string, string>[])
      sums.set(kind, (sums.get(kind) ?? 0) + Number(payments))
  }
  t.strictSame(Object.fromEntries(sums), { sales: 6, refunds: 2, gas: 5 })
  t.equal((await statement(t, fixture, '2026-01')).out, 'no sale and no refund in 2026-01')
})

t.test('prints the rows of the CSV as JSON too', async (t) => {
  const fixture = await fill(t)
  const [head = '', ...lines] = (await statement(t, fixture, '2026-10', '--csv')).out.split('\n')
  const rows: Record<string, string>[] = JSON.parse((await statement(t, fixture, '2026-10', '--json')).out)
  t.equal(rows.length, lines.length)
  t.strictSame(Object.keys(rows[0] ?? {}), head.split(','))
})

t.test('refuses what is no month, two formats and no price of a coin', async (t) => {
  for (const [words, says] of [
    [['2026-13'], /name a month, such as 2026-11; not "2026-13"/],
    [['2999-01'], /in the future/],
    [['2026-10', '--csv', '--json'], /--csv and --json exclude each other/],
    [['2026-10', '--coin-price', 'DOGE=1'], /--coin-price takes one of ETH/],
    [['2026-10', '--coin-price', 'ETH'], /--coin-price takes/],
  ] as const)
    t.match(await runLine(['payments', 'statement', ...words]), { code: 64, out: '', err: says })
})

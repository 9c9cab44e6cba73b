import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runLine, type Ran } from '../../../support/run-command.ts'
import {
  HOUR,
  loseOutcome,
  MINUTE,
  openLedgerFixture,
  purchaseOf,
  receiptOf,
  SECRETS,
  sell,
  sellMetered,
  type LedgerFixture,
} from '../../../support/ledger-fixture.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'

const PAYER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

interface Shelf {
  readonly fixture: LedgerFixture
  readonly old: PaymentRecord
  readonly doubtful: PaymentRecord
  readonly voided: PaymentRecord
  readonly latest: PaymentRecord
}

/** Four payments of the last days, written by the engine. */
async function fill(t: Test): Promise<Shelf> {
  const fixture = openLedgerFixture(t)
  const now = Date.now()
  const first = purchaseOf({ amount: '250000', operation: 'bundle/market-snapshot', payer: PAYER })
  const old = await fixture.record(first, now - 49 * HOUR, sell(receiptOf(first)))
  const doubtful = await fixture.record(purchaseOf(), now - 2 * HOUR, loseOutcome('unknown'))
  const voided = await fixture.record(purchaseOf(), now - HOUR, (lease) => lease.void())
  const last = purchaseOf({ identifier: 'identifier-7f3a' })
  const latest = await fixture.record(last, now - MINUTE, sell(receiptOf(last)))
  return { fixture, old, doubtful, voided, latest }
}

async function list(t: Test, { fixture }: Pick<Shelf, 'fixture'>, ...flags: string[]): Promise<Ran> {
  const ran = await runLine(['payments', 'list', '--data-dir', fixture.dataDir, ...flags])
  for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret, 'nothing secret is printed')
  return ran
}

function ids({ out }: Ran): string[] {
  return (JSON.parse(out) as { payment: string }[]).map(({ payment }) => payment)
}

t.test('lists payments from the newest on, with what was charged and to whom', async (t) => {
  const shelf = await fill(t)
  const { code, out, err } = await list(t, shelf)
  t.equal(code, 0)
  t.equal(err, '')
  const { latest, voided, doubtful, old } = shelf
  const lines = out.split('\n')
  t.strictSame(
    lines.slice(0, 5).map((line) => line.split('\t')[1]),
    ['ID', latest.id, voided.id, doubtful.id, old.id],
  )
  t.strictSame(lines[1]?.split('\t'), [
    new Date(latest.createdAt).toISOString(),
    latest.id,
    'sent',
    'yes',
    '0.005000 USDC',
    'eip155:8453',
    'util/workday',
    latest.payer,
    latest.receipt?.transaction,
    '-',
    '-',
  ])
  t.strictSame(lines[3]?.split('\t').slice(2, 5), ['unknown', 'unknown', '0.005000 USDC'])
  t.equal(lines[2]?.split('\t').at(-1), '-', 'what was not charged has no transaction')
})

t.test('shows what a metered payment was charged, of what it had authorized, and for what', async (t) => {
  const fixture = openLedgerFixture(t)
  const purchase = purchaseOf({ amount: '50000', operation: 'chat' })
  const receipt = { ...receiptOf(purchase), amount: '700' }
  const usage = [
    { part: 'base', amount: '0.0002' },
    { part: 'value_of /usage/prompt_tokens', count: 1000, units: 1, amount: '0.0005' },
  ]
  await fixture.record(purchase, Date.now() - MINUTE, sellMetered(receipt, usage))
  const spelt = 'base: 0.0002 USD, value_of /usage/prompt_tokens = 1000: 0.0005 USD'
  const { out } = await list(t, { fixture })
  const cells = out.split('\n')[1]?.split('\t') ?? []
  t.equal(cells[4], '0.000700 USDC')
  t.strictSame(cells.slice(-2), ['0.050000 USDC', spelt])
  t.match(out, /^revenue: 0\.000700 USDC on eip155:8453 \(1 payment\)$/m)
  t.match(JSON.parse((await list(t, { fixture }, '--json')).out), [
    { amount: '0.000700', authorized: '0.050000', usage: spelt },
  ])
})

t.test('sums the money below the list by state, with amounts in doubt apart', async (t) => {
  const { out } = await list(t, await fill(t))
  t.match(out, /^sent +2 +0\.255000 USDC on eip155:8453$/m)
  t.match(out, /^voided +1 +0\.000000 USDC on eip155:8453$/m)
  t.match(out, /^unknown +1 +0\.000000 USDC on eip155:8453$/m)
  t.match(out, /^revenue: 0\.255000 USDC on eip155:8453 \(2 payments\)$/m)
  t.match(
    out,
    /^in doubt: 0\.005000 USDC on eip155:8453 \(1 payment\); "ratecard payments reconcile" asks the chain$/m,
  )
})

t.test('sums revenue by route, network and day', async (t) => {
  const shelf = await fill(t)
  const { old, latest } = shelf
  const dayOf = ({ settledAt = 0 }: PaymentRecord): string => new Date(settledAt).toISOString().slice(0, 10)
  for (const flags of [[], ['--totals']]) {
    const { out } = await list(t, shelf, ...flags)
    t.match(out, /^ROUTE +CHARGED +MONEY\nbundle\/market-snapshot +1 +0\.250000 USDC on eip155:8453$/m)
    t.match(out, /^util\/workday +1 +0\.005000 USDC on eip155:8453$/m, 'what was not charged brings nothing')
    t.match(out, /^eip155:8453 +2 +0\.255000 USDC on eip155:8453$/m)
    t.match(
      out,
      new RegExp(`^DAY .*\n${dayOf(latest)} +1 +0\\.005000 .*\n${dayOf(old)} +1 +0\\.250000 `, 'm'),
    )
    t.equal(out.includes(latest.id), flags.length === 0)
  }
  const { out } = await list(t, shelf, '--totals', '--json')
  const money = [{ amount: '0.250000', token: 'USDC', network: 'eip155:8453' }]
  t.match(JSON.parse(out), {
    payments: 4,
    revenue: { payments: 2 },
    in_doubt: { payments: 1 },
    states: { sent: { payments: 2 }, voided: { payments: 1 } },
    routes: { 'bundle/market-snapshot': { payments: 1, money } },
    networks: { 'eip155:8453': { payments: 2 } },
    days: { [dayOf(old)]: { payments: 1, money } },
  })
  t.match(await list(t, shelf, '--totals', '--route', 'no/such'), { code: 0, out: '', err: 'no payments' })
})

t.test('sums up everything below a short list, and says that more exists', async (t) => {
  const shelf = await fill(t)
  const { out } = await list(t, shelf, '--limit', '1')
  t.match(out, shelf.latest.id)
  t.notMatch(out, shelf.voided.id)
  t.match(out, /the newest 1 of 4; --limit shows more/)
  t.match(out, /revenue: 0\.255000 USDC/)
})

t.test('filters the list', async (t) => {
  const shelf = await fill(t)
  const { old, doubtful, voided, latest } = shelf
  for (const [flags, expected] of [
    [['--state', 'voided'], [voided.id]],
    [['--state', 'unknown'], [doubtful.id]],
    [['--route', 'bundle/market-snapshot'], [old.id]],
    [['--route', 'bundle'], []],
    [['--payer', PAYER.toLowerCase()], [old.id]],
    [
      ['--since', '24h'],
      [latest.id, voided.id, doubtful.id],
    ],
    [['--since', '90m', '--state', 'sent'], [latest.id]],
    [
      ['--since', new Date(voided.createdAt).toISOString()],
      [latest.id, voided.id],
    ],
    [
      ['--limit', '2'],
      [latest.id, voided.id],
    ],
    [[], [latest.id, voided.id, doubtful.id, old.id]],
  ] as const) {
    t.strictSame(ids(await list(t, shelf, '--json', ...flags)), expected, flags.join(' '))
  }
})

t.test('prints every payment as one JSON array', async (t) => {
  const fixture = openLedgerFixture(t)
  for (let number = 0; number < 60; number += 1) await fixture.record(purchaseOf(), Date.now() - number)
  t.equal(ids(await list(t, { fixture }, '--json')).length, 60)
  const { out } = await list(t, { fixture })
  t.equal(out.split('\n').filter((line) => line.includes('pay_')).length, 50)
})

t.test('shows a person aligned columns that fit a terminal, and states in colour', async (t) => {
  const { fixture, latest } = await fill(t)
  const argv = ['payments', 'list', '--data-dir', fixture.dataDir]
  const coloured = (await runLine(argv, { reader: 'person' })).out
  t.ok(coloured.includes('\u001b[32msent\u001b[0m'), coloured)
  const { out } = await runLine(argv, { reader: 'person', variables: { NO_COLOR: '1' } })
  t.equal(out, stripVTControlCharacters(coloured), 'the same without colours')
  const [table = ''] = out.split('\n\n')
  for (const line of table.split('\n')) t.ok(line.length <= 80, line)
  const [head = '', first = ''] = table.split('\n')
  t.equal(first.indexOf(latest.id), head.indexOf('ID'))
  t.match(first.slice(head.indexOf('OPERATION')), /^util\//)
})

t.test('shows a person totals of several networks within 80 columns', async (t) => {
  const fixture = openLedgerFixture(t)
  for (const network of ['eip155:8453', 'eip155:137', 'eip155:43114']) {
    const purchase = purchaseOf({ network })
    await fixture.record(purchase, Date.now() - MINUTE, sell(receiptOf(purchase)))
  }
  const argv = ['payments', 'list', '--totals', '--data-dir', fixture.dataDir]
  const { out } = await runLine(argv, { reader: 'person', variables: { NO_COLOR: '1' } })
  t.match(out, /^revenue: .* on eip155:8453/m)
  for (const line of out.split('\n')) t.ok(line.length <= 80, line)
})

t.test('says that a list is empty, and prints an empty array as JSON', async (t) => {
  const shelf = await fill(t)
  t.match(await list(t, shelf, '--route', 'nothing/here'), { code: 0, out: '', err: 'no payments' })
  t.match(await list(t, shelf, '--route', 'nothing/here', '--json'), { code: 0, out: '[]' })
})

t.test('escapes control characters in a transaction that a facilitator reports', async (t) => {
  const fixture = openLedgerFixture(t)
  const purchase = purchaseOf()
  await fixture.record(
    purchase,
    Date.now() - MINUTE,
    sell(receiptOf(purchase, '0x\u001b]0;owned\u0007\u009b2J\nrow')),
  )
  for (const flags of [[], ['--json']]) {
    const { out } = await list(t, { fixture }, ...flags)
    for (const control of ['\u001b', '\u0007', '\u009b', '\nrow']) t.notOk(out.includes(control))
    t.match(out, /0x\u{FFFD}\]0;owned/u)
  }
})

t.test('reports a mistyped directory', async (t) => {
  const fixture = openLedgerFixture(t)
  for (const words of [['list'], ['show', `pay_${'a'.repeat(22)}`], ['export'], ['reconcile']]) {
    const { code, out, err } = await runLine(['payments', ...words, '--data-dir', fixture.dataDir], {
      variables: { PAY_TO: PAYER },
    })
    t.equal(code, 1)
    t.equal(out, '')
    t.match(
      err,
      `ratecard payments ${words[0]}: there is no ledger in ${fixture.dataDir}/ledger; name the server’s with --data-dir`,
    )
  }
})

t.test('lists sandbox payments with --sandbox only, and real ones without it only', async (t) => {
  const fixture = openLedgerFixture(t, ['sandbox', 'ledger'])
  await fixture.record(purchaseOf(), Date.now())
  const without = await list(t, { fixture })
  t.equal(without.code, 1)
  t.match(without.err, 'a sandbox has one: add --sandbox')
  t.equal(ids(await list(t, { fixture }, '--sandbox', '--json')).length, 1)
  const shared = await runLine(['payments', 'list', '--sandbox', '--json', '--data-dir', fixture.dataDir], {
    variables: { REDIS_URL: 'redis://127.0.0.1:1' },
  })
  t.equal(ids(shared).length, 1, 'play money is in no Redis')
  const own = openLedgerFixture(t)
  await own.record(purchaseOf(), Date.now())
  const mistaken = await list(t, { fixture: own }, '--sandbox')
  t.equal(mistaken.code, 1)
  t.match(mistaken.err, /there is no ledger of a sandbox/)
})

t.test('reports a file that is another program’s in one line', async (t) => {
  const { dataDir } = openLedgerFixture(t)
  mkdirSync(join(dataDir, 'ledger'))
  writeFileSync(join(dataDir, 'ledger', 'data.mdb'), 'x'.repeat(9000))
  const { code, err } = await runLine(['payments', 'list', '--data-dir', dataDir])
  t.equal(code, 1)
  t.match(
    err,
    /^ratecard payments list: the ledger directory .* cannot be used: data\.mdb is not an LMDB file$/,
  )
  rmSync(dataDir, { recursive: true })
})

t.test('refuses a wrong value of a flag with the values it takes, before it reads the ledger', async (t) => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe'
  for (const [flags, says] of [
    [['--state', 'paid'], /--state takes one of reserved, .*unknown; not "paid"/],
    [['--route', '/paid/ping'], /--route takes an operation as the list names it/],
    [['--payer', address], /--payer takes an address, 0x and 40 hexadecimal digits/],
    [['--limit', '0'], /--limit takes a number from 1/],
    [['--limit', '1e3'], /--limit takes a number from 1/],
    [['--since', 'yesterday'], /--since takes how long ago or a date, such as 24h/],
    [['--since', ''], /--since takes/],
    [['more'], /unexpected argument "more"/],
  ] as const) {
    const { code, out, err } = await runLine(['payments', 'list', ...flags])
    t.equal(code, 64, flags.join(' '))
    t.equal(out, '')
    t.match(err, says)
    t.match(err, /usage: ratecard payments list/)
  }
})

t.test('lists the four payments commands, also after a typing error', async (t) => {
  const bare = await runLine(['payments'])
  t.equal(bare.code, 64)
  t.match(
    bare.err,
    /missing subcommand[^]*payments list[^]*payments show[^]*payments reconcile[^]*payments export/,
  )
  t.notMatch(bare.err, 'serve')
  t.match(await runLine(['payments', 'lst']), { code: 64, err: /unknown command "payments lst"/ })
  t.match(await runLine(['payments', '--help']), { code: 0, out: /payments reconcile/, err: '' })
})

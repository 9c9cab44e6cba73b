import t from 'tap'
import { runLine } from '../../../support/run-command.ts'
import {
  HOUR,
  loseOutcome,
  MINUTE,
  openLedgerFixture,
  parse,
  purchaseOf,
  randomHash,
  receiptOf,
  sell,
} from '../../../support/ledger-fixture.ts'
import { FORGOTTEN } from '../../../../src/engine/ledger/forget-payer.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { join } from 'node:path'

const PAYER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const DAY = 24 * HOUR

t.test('deletes what a payer has bought at once, and keeps the money side of charges', async (t) => {
  const fixture = openLedgerFixture(t)
  const mine = purchaseOf({ payer: PAYER, identifier: 'identifier-7f3a' })
  const receipt = { ...receiptOf(mine), gasCost: '7' }
  const sold = await fixture.record(mine, Date.now() - HOUR, sell(receipt))
  const others = purchaseOf()
  const other = await fixture.record(others, Date.now() - HOUR, sell(receiptOf(others)))
  await fixture.record(purchaseOf({ payer: PAYER }), Date.now() - HOUR, (lease) => lease.void())
  const unknown = await fixture.record(
    purchaseOf({ payer: PAYER.toLowerCase() }),
    Date.now() - HOUR,
    loseOutcome('unknown'),
  )
  const forget = () =>
    runLine(['payments', 'forget', PAYER.toLowerCase(), '--json', '--data-dir', fixture.dataDir])
  const first = await forget()
  t.equal(first.code, 1, 'one is not finished')
  t.match(parse(first.out), { answers: 1, deleted: 1, reduced: 1, kept: 0, open: 1 })

  const records = await fixture.all()
  t.equal(records.length, 3)
  const kept = records.find(({ id }) => id === sold.id)
  t.match(kept, {
    payer: PAYER,
    payee: mine.payee,
    network: mine.network,
    asset: mine.asset,
    amount: mine.amount,
    state: 'sent',
    receipt,
    settledAt: sold.settledAt,
    createdAt: sold.createdAt,
    operation: FORGOTTEN,
    digest: '',
    revision: '',
    authorizationHash: '',
    redeliver: 0,
  })
  t.notOk(kept?.answer)
  t.notOk(kept?.redeliveryToken)
  t.notOk(kept?.identifier)
  t.notMatch(
    JSON.stringify(kept),
    /util\/workday|digest-7f3a|buyer-7f3a|token-7f3a|seal-7f3a|identifier-7f3a/,
  )
  t.strictSame(
    records.find(({ id }) => id === other.id),
    other,
    'other payers are untouched',
  )
  t.strictSame(
    records.find(({ id }) => id === unknown.id),
    unknown,
  )
  const ledger = await openLmdbLedger(join(fixture.dataDir, 'ledger'))
  t.equal(sold.answer && (await ledger.answers.read(sold.id, sold.answer)), undefined, 'the answer is gone')
  t.ok(other.answer && (await ledger.answers.read(other.id, other.answer)))
  await ledger.close()

  t.match(parse((await forget()).out), { answers: 0, deleted: 0, reduced: 0, kept: 1, open: 1 })
  const rows = await runLine([
    'payments',
    'export',
    '--json',
    '--payer',
    PAYER,
    '--data-dir',
    fixture.dataDir,
  ])
  t.match(JSON.parse(rows.out), [{ payment: sold.id, amount: '0.005000', operation: FORGOTTEN }])
})

t.test('deletes charges whose accounting period is over, but nothing that a refund needs', async (t) => {
  const fixture = openLedgerFixture(t)
  const at = Date.now() - 400 * DAY
  const sellOne = async (changes: object, time: number) => {
    const purchase = purchaseOf({ payer: PAYER, validBefore: at + MINUTE, ...changes })
    return fixture.record(purchase, time, sell(receiptOf(purchase)))
  }
  await sellOne({}, at)
  const young = await sellOne({}, Date.now() - DAY)
  const owed = purchaseOf({ payer: PAYER, settle: 'upfront', validBefore: at + MINUTE })
  const { id } = await fixture.record(owed, at, (lease) => lease.settle(receiptOf(owed)))
  const refunded = purchaseOf({ payer: PAYER, validBefore: at + MINUTE })
  await fixture.record(refunded, at, async (lease) => {
    await sell(receiptOf(refunded))(lease)
    await lease.refund({ kind: 'sent', hash: randomHash() })
  })
  const { code, out } = await runLine([
    'payments',
    'forget',
    PAYER,
    '--before',
    '365d',
    '--data-dir',
    fixture.dataDir,
  ])
  t.equal(code, 0, out)
  t.match(out, /deleted of 0x5aA.*: 3 answers, 2 records, and in 2 records everything but the money side/)
  t.match(out, /kept: 2 records .* because charges and refunds have to be accounted for/)
  t.match(out, /not part of the ledger: log files, backups/)
  t.strictSame((await fixture.all()).map((record) => record.id).toSorted(), [young.id, id].toSorted())
  const shown = await runLine(['payments', 'list', '--json', '--data-dir', fixture.dataDir])
  t.equal(shown.code, 0)
  const due = await runLine(
    ['payments', 'refund', '--due', '--dry-run', '--json', '--data-dir', fixture.dataDir],
    {
      variables: { RPC_URL_8453: 'http://127.0.0.1:9', PAY_TO: PAYER },
    },
  )
  t.match(JSON.parse(due.out), [{ payment: id, amount: '0.005000', payer: PAYER, result: 'would_send' }])
})

t.test('forgets a payer on Solana, and nobody whose address differs in letter case alone', async (t) => {
  const fixture = openLedgerFixture(t)
  const payer = 'So11111111111111111111111111111111111111112'
  const alike = 'so11111111111111111111111111111111111111112'
  for (const each of [payer, alike])
    await fixture.record(purchaseOf({ payer: each }), Date.now() - HOUR, (lease) => lease.void())
  const { code, out } = await runLine(['payments', 'forget', payer, '--json', '--data-dir', fixture.dataDir])
  t.equal(code, 0)
  t.match(parse(out), { deleted: 1, reduced: 0 })
  t.strictSame(
    (await fixture.all()).map((entry) => entry.payer),
    [alike],
  )
})

t.test('says that a payer is unknown, and refuses what is no address', async (t) => {
  const fixture = openLedgerFixture(t)
  await fixture.record(purchaseOf(), Date.now())
  const nobody = await runLine(['payments', 'forget', PAYER, '--data-dir', fixture.dataDir])
  t.match(nobody, { code: 0, out: `this ledger has no payment of ${PAYER}` })
  t.match(await runLine(['payments', 'forget', 'somebody']), {
    code: 64,
    err: /name the payer by its address/,
  })
})

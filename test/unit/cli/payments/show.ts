import t, { type Test } from 'tap'
import { runLine, type Ran } from '../../../support/run-command.ts'
import {
  ANSWER,
  HOUR,
  loseOutcome,
  MINUTE,
  openLedgerFixture,
  parse,
  purchaseOf,
  randomHash,
  receiptOf,
  SECRETS,
  sell,
  type LedgerFixture,
  type Processing,
} from '../../../support/ledger-fixture.ts'
import type { Purchase } from '../../../../src/engine/ledger/payment-record.ts'

async function show(t: Test, { dataDir }: LedgerFixture, ...words: string[]): Promise<Ran> {
  const ran = await runLine(['payments', 'show', '--data-dir', dataDir, ...words])
  for (const secret of SECRETS) t.notMatch(ran.out + ran.err, secret, 'nothing secret is printed')
  return ran
}

t.test('shows the history of one payment, and keeps what was sold private', async (t) => {
  const fixture = openLedgerFixture(t)
  const purchase = purchaseOf({ identifier: 'identifier-7f3a' })
  const receipt = receiptOf(purchase)
  const at = Date.now() - HOUR
  const { id, key } = await fixture.record(purchase, at, sell(receipt))
  const { code, out } = await show(t, fixture, id, '--json')
  t.equal(code, 0)
  t.match(parse(out), {
    payment: id,
    time: new Date(at).toISOString(),
    state: 'sent',
    charged: 'yes',
    amount: '0.005000',
    token: 'USDC',
    amount_atomic: '5000',
    transaction: receipt.transaction,
    authorization_nonce: key.slice(-66),
    settled_at: new Date(at).toISOString(),
    answer_kept_until: new Date(at + 24 * HOUR).toISOString(),
    worked_on_by: null,
    dispatch: { kind: 'own', transaction: receipt.transaction, nonce: 1, can_be_sent_again: true },
    answer: { type: 'application/json', bytes: Buffer.byteLength(JSON.stringify({ sold: 'answer-7f3a' })) },
    means: /^Charged and answered; the same payment is answered again until/,
    advice: 'nothing',
  })
  const text = await show(t, fixture, id)
  t.match(text.out, new RegExp(`^payment +${id}$`, 'm'))
  t.match(text.out, /\n\nCharged and answered; [^]*\nTo do: nothing\.$/)
  const argv = ['payments', 'show', id, '--data-dir', fixture.dataDir]
  const person = await runLine(argv, { reader: 'person', variables: { NO_COLOR: '1' } })
  for (const line of person.out.split('\n')) t.ok(line.length <= 80, line)
  t.match(person.out, `transaction\n  ${receipt.transaction}\n`, 'a hash can be copied')
})

/** What is booked, and what the operator has to be told. */
function stories(): readonly (readonly [string, Partial<Purchase>, number, Processing, RegExp, RegExp])[] {
  const soon = Date.now() + HOUR
  const ago = Date.now() - HOUR
  return [
    [
      'a payment that is worked on',
      { validBefore: soon },
      Date.now() + MINUTE,
      async () => {},
      /working on it right now; nothing was charged/,
      /^nothing$/,
    ],
    [
      'a server that died at work',
      {},
      ago,
      async () => {},
      /has ended in the middle; nothing was charged/,
      /^nothing$/,
    ],
    [
      'work that nobody has paid for yet',
      { validBefore: soon },
      ago,
      (lease) => lease.advance('fulfilled', { answer: ANSWER }),
      /charged and answered when the buyer sends the same payment again/,
      /^nothing$/,
    ],
    [
      'work that nobody will pay for',
      { validBefore: ago },
      ago,
      (lease) => lease.advance('fulfilled', { answer: ANSWER }),
      /has not come back for it; nothing was charged/,
      /^nothing$/,
    ],
    [
      'a server that died while it charged',
      {},
      ago,
      loseOutcome('settling'),
      /whether the money has moved is not known/,
      /start one if none is running; "ratecard payments reconcile"/,
    ],
    [
      'an unknown outcome',
      {},
      ago,
      loseOutcome('unknown'),
      /the money may have moved, or may not/,
      /^no refund before it is known/,
    ],
    [
      'a failure',
      { validBefore: soon },
      ago,
      (lease) => lease.void(),
      /may use the same payment again until/,
      /^nothing$/,
    ],
    [
      'a failure that is over',
      { validBefore: ago },
      ago,
      (lease) => lease.void(),
      /the payment has expired/,
      /^nothing$/,
    ],
    [
      'an answer that is owed',
      { settle: 'upfront' },
      ago,
      (lease) => lease.settle(receiptOf(purchaseOf())),
      /the buyer is owed an answer/,
      /see why util\/workday fails; the same payment runs it again without a charge, else refund it with "ratecard payments refund pay_/,
    ],
    [
      'work that is paid for and under way',
      { settle: 'upfront' },
      Date.now() + MINUTE,
      (lease) => lease.settle(receiptOf(purchaseOf())),
      /^Charged; the work is being done right now\.$/,
      /^nothing$/,
    ],
    [
      'a sale nobody can ask for again',
      { redeliveryToken: undefined },
      ago,
      sell(receiptOf(purchaseOf())),
      /^Charged and answered\.$/,
      /^nothing$/,
    ],
    [
      'an answer that was never given',
      { settle: 'upfront', redeliver: MINUTE },
      ago,
      (lease) => lease.settle(receiptOf(purchaseOf())),
      /never succeeded: the buyer is owed the money/,
      /^refund it with "ratecard payments refund pay_/,
    ],
    [
      'an answer of paid work that waits',
      { settle: 'upfront' },
      ago,
      async (lease) => {
        await lease.settle(receiptOf(purchaseOf()))
        await lease.advance('fulfilled', { answer: ANSWER })
      },
      /Charged; the answer is not known to have arrived, and is kept until/,
      /the buyer gets it, without a charge, by sending the same payment again/,
    ],
    [
      'an answer that did not arrive',
      {},
      ago,
      async (lease) => {
        await lease.advance('fulfilled', { answer: ANSWER })
        await lease.settle(receiptOf(purchaseOf()))
      },
      /Charged; the answer is not known to have arrived/,
      /if that never comes, refund it with/,
    ],
    [
      'an answer that nobody has fetched in time',
      { redeliver: MINUTE },
      ago,
      async (lease) => {
        await lease.advance('fulfilled', { answer: ANSWER })
        await lease.settle(receiptOf(purchaseOf()))
      },
      /^Charged; the time in which the answer is given again is over/,
      /if the buyer says that no answer came: refund it/,
    ],
    [
      'paid work that fails for good',
      { settle: 'upfront' },
      ago,
      async (lease) => {
        await lease.settle(receiptOf(purchaseOf()))
        await lease.refund({ kind: 'due', reason: 'not_found' })
      },
      /fails whenever it is run \(not_found\): the buyer is owed the money/,
      /^refund it with "ratecard payments refund pay_/,
    ],
    [
      'a refund',
      { settle: 'upfront' },
      ago,
      async (lease) => {
        await lease.settle(receiptOf(purchaseOf()))
        await lease.refund({ kind: 'sent', hash: randomHash() })
      },
      /^Charged and refunded in 0x[0-9a-f]{64}\.$/,
      /^nothing$/,
    ],
    [
      'an old sale',
      { redeliver: MINUTE },
      ago,
      sell(receiptOf(purchaseOf())),
      /^Charged and answered; the time/,
      /^nothing$/,
    ],
  ]
}

t.test('explains every state with what was charged and what to do', async (t) => {
  for (const [name, changes, at, work, means, advice] of stories()) {
    const fixture = openLedgerFixture(t)
    const { id } = await fixture.record(purchaseOf(changes), at, work)
    const said = parse((await show(t, fixture, id, '--json')).out)
    t.match(said, { means, advice }, name)
  }
})

t.test('keeps signed bytes, facilitator requests and addresses beyond the host private', async (t) => {
  const fixture = openLedgerFixture(t)
  const url = 'https://pay.example.com/key-7f3a'
  const asked = await fixture.record(purchaseOf(), Date.now() - HOUR, (lease) =>
    lease.advance('settling', { dispatch: { kind: 'facilitator', url, request: 'request-7f3a' } }),
  )
  const { out } = await show(t, fixture, asked.id, '--json')
  t.notMatch(out, 'key-7f3a')
  t.match(parse(out), {
    dispatch: { kind: 'facilitator', host: 'pay.example.com', can_be_sent_again: true },
  })
  const signer = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const handed = await fixture.record(
    purchaseOf({ key: 'x402:upto:handed-over' }),
    Date.now() - HOUR,
    (claim) => claim.advance('settling', { dispatch: { kind: 'handed over', signer, raw: '0xc0ffee' } }),
  )
  const { out: told } = await show(t, fixture, handed.id, '--json')
  t.notMatch(told, 'c0ffee')
  t.match(parse(told), { dispatch: { kind: 'handed over', signer, can_be_sent_again: true } })
  const signed = await fixture.record(
    purchaseOf({ protocol: 'mpp', key: 'mpp:challenge' }),
    Date.now() - HOUR,
    (lease) => lease.advance('settling', { dispatch: { kind: 'payer', hash: '0x01', raw: '0xfeed7f3a' } }),
  )
  t.match(parse((await show(t, fixture, signed.id, '--json')).out), {
    authorization_nonce: null,
    dispatch: { kind: 'payer', transaction: '0x01', can_be_sent_again: true },
  })
})

t.test('says whether an id is malformed or unknown', async (t) => {
  const fixture = openLedgerFixture(t)
  await fixture.record(purchaseOf(), Date.now() - HOUR)
  const other = `pay_${'a'.repeat(22)}`
  t.match(await show(t, fixture, other), { code: 1, out: '', err: `this ledger has no payment ${other}` })
  t.match(await show(t, fixture), { code: 64, out: '', err: /missing argument: the id of a payment/ })
  for (const word of ['0x01', 'pay_short', `${other}b`])
    t.match(await show(t, fixture, word), {
      code: 64,
      out: '',
      err: `"${word}" is not the id of a payment, pay_ and 22 characters`,
    })
})

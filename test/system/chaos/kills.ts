import t from 'tap'
import { SEED } from '../../support/random.ts'
import { runChaos } from '../../chaos/harness/chaos-run.ts'

t.test(
  'charges and answers each purchase once while two processes with one store and one signer are killed four times',
  async (t) => {
    const { totals, findings, log, leaked, pagesRead, consoleMismatches } = await runChaos({
      kills: 4,
      processes: 2,
      store: 'lmdb',
      protocol: 'x402',
      buyers: 16,
      seed: SEED,
      reorgMs: 0,
      onProgress: () => undefined,
    })
    t.equal(totals.lost, 0, 'every charged purchase is answered')
    t.equal(totals.doubleCharged, 0, 'no purchase is charged twice')
    t.equal(totals.unpaid, 0, 'every answer is paid for')
    t.equal(totals.wrongReceipts, 0, 'every receipt names the charge of its own purchase')
    t.equal(totals.wrongAmounts, 0, 'every charge is the price of its call')
    t.equal(totals.unknownCharges, 0, 'every charge belongs to a purchase')
    t.equal(totals.answered, totals.purchases, 'every purchase is answered')
    t.equal(log.wrongAnswers, 0, 'every answer is for the arguments that were sent')
    t.equal(totals.unresolved, 0, 'the ledger knows the outcome of every payment')
    t.equal(totals.ledgerMismatches, 0, 'the ledger agrees with the chain')
    t.equal(totals.writeMismatches, 0, 'exactly the writes of charged payments are committed')
    t.equal(totals.unkeyed, 0, 'every call with effects has an idempotency key of its own')
    t.equal(totals.withoutEffect, 0, 'every charged call with effects has reached the upstream')
    t.strictSame(consoleMismatches, [], 'the console shows the money of the ledger and the chain')
    t.ok(pagesRead > 0, 'the console was read meanwhile')
    t.strictSame(leaked, [], 'logs and error bodies contain no secret')
    t.comment(JSON.stringify(totals))
    for (const line of findings) t.comment(line)
  },
)

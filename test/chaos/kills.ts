import t from 'tap'
import { SEED } from '../support/random.ts'
import { storm } from './storm/storm.ts'

t.test(
  'charges and answers each purchase once while two processes with one store and one signer are killed four times',
  async (t) => {
    const { tally, findings, diary, leaked } = await storm({
      kills: 4,
      processes: 2,
      store: 'lmdb',
      protocol: 'x402',
      buyers: 16,
      seed: SEED,
      progress: () => undefined,
    })
    t.equal(tally.lost, 0, 'nobody has paid for nothing')
    t.equal(tally.doubled, 0, 'nobody has paid twice')
    t.equal(tally.uncharged, 0, 'nobody is given what was not paid for')
    t.equal(tally.crossed, 0, 'every receipt names the charge for what it came with')
    t.equal(tally.strange, 0, 'nobody has paid for what was not asked for')
    t.equal(tally.fetched, tally.wanted, 'everybody has what was wanted')
    t.equal(diary.wrong, 0, 'and not what somebody else wanted')
    t.equal(tally.unresolved, 0, 'the ledger knows how every payment has ended')
    t.equal(tally.misbooked, 0, 'as the chain does')
    t.equal(tally.miskept, 0, 'what was paid for is kept, and nothing else')
    t.strictSame(leaked, [], 'nothing secret stands in the logs or in an error body')
    t.comment(JSON.stringify(tally))
    for (const line of findings) t.comment(line)
  },
)

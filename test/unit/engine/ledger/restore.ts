import t from 'tap'
import { chargeStatus } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord, Receipt, Refund, State } from '../../../../src/engine/ledger/payment-record.ts'
import { mergeRecords } from '../../../../src/engine/ledger/restore.ts'
import { fc } from '../../../support/fast-check.ts'
import { makeRecord } from '../../../support/payment-records.ts'

const NOW = 1_800_000_000_000

const receipts = fc.record({
  transaction: fc.constantFrom('0x01', '0x02'),
  network: fc.constant('eip155:84532'),
  payer: fc.constant('0xb0'),
  amount: fc.constantFrom('5000', '4000'),
})
const refunds: fc.Arbitrary<Refund> = fc.constantFrom(
  { kind: 'due', reason: 'not_found' },
  { kind: 'sending', hash: '0x0a' },
  { kind: 'sent', hash: '0x0a' },
)
const uncharged: readonly State[] = ['reserved', 'fulfilled', 'settling', 'unknown', 'voided']
const charged: readonly State[] = ['settled', 'sent', 'fulfilled']

/** Records of one payment, as they are left after any history. */
const records: fc.Arbitrary<PaymentRecord> = fc.oneof(
  fc
    .record({ state: fc.constantFrom(...uncharged), undone: fc.option(fc.constantFrom('0x01', '0x02')) })
    .map(({ state, undone }) => ({
      ...makeRecord('x402:one', NOW),
      state,
      ...(undone !== null && { undone: { state: 'sent' as const, transaction: undone } }),
    })),
  fc
    .record({
      state: fc.constantFrom(...charged),
      receipt: receipts,
      refund: fc.option(refunds),
      redeliver: fc.constantFrom(0, 1_000),
    })
    .map(({ refund, redeliver, ...rest }) => ({
      ...makeRecord('x402:one', NOW),
      ...rest,
      settledAt: NOW,
      redeliver: refund === null ? redeliver : 0,
      ...(refund !== null && { refund }),
    })),
)

const REFUNDED = ['due', 'sending', 'sent']
const amountOf = (receipt: Receipt | undefined): bigint => BigInt(receipt?.amount ?? 0)
const refundOf = ({ refund }: PaymentRecord): number => REFUNDED.indexOf(refund?.kind ?? '')

t.test('a merge never lowers what was settled or refunded in the ledger', async () => {
  fc.assert(
    fc.property(records, records, (standing, backup) => {
      const merged = mergeRecords(standing, backup) ?? standing
      return (
        amountOf(merged.receipt) >= amountOf(standing.receipt) &&
        refundOf(merged) >= refundOf(standing) &&
        !(chargeStatus(standing) === 'yes' && chargeStatus(merged) !== 'yes') &&
        !(chargeStatus(standing) === 'unknown' && chargeStatus(merged) === 'no')
      )
    }),
    { numRuns: 2_000 },
  )
})

t.test(
  'a merge restores what was settled or refunded in the backup, unless the chain has undone it',
  async () => {
    fc.assert(
      fc.property(records, records, (standing, backup) => {
        const merged = mergeRecords(standing, backup) ?? standing
        const isUndone =
          standing.receipt === undefined && standing.undone?.transaction === backup.receipt?.transaction
        if (isUndone && standing.undone !== undefined) return merged === standing
        return amountOf(merged.receipt) >= amountOf(backup.receipt) && refundOf(merged) >= refundOf(backup)
      }),
      { numRuns: 2_000 },
    )
  },
)

t.test('a merge never opens a charged payment for another answer again', async () => {
  fc.assert(
    fc.property(records, records, (standing, backup) => {
      const merged = mergeRecords(standing, backup) ?? standing
      if (standing.receipt === undefined) return true
      return merged.redeliver <= standing.redeliver && merged.state === standing.state
    }),
    { numRuns: 2_000 },
  )
})

t.test('a merge of equal records changes nothing, and a second one of the same backup neither', async () => {
  fc.assert(
    fc.property(records, records, (standing, backup) => {
      const merged = mergeRecords(standing, backup) ?? standing
      return mergeRecords(standing, standing) === undefined && mergeRecords(merged, backup) === undefined
    }),
    { numRuns: 2_000 },
  )
})

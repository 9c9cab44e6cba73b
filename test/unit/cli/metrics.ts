import t from 'tap'
import { openMetrics } from '../../../src/cli/metrics.ts'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { purchaseOf, receiptOf } from '../../support/ledger-fixture.ts'
import { makeRecord } from '../../support/payment-records.ts'

t.test('counts what metered payments were charged, had authorized and have used', async (t) => {
  const ledger = await openLmdbLedger(t.testdir())
  t.teardown(() => ledger.close())
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
  const sell = (authorized: string, charged: string, usage?: PaymentRecord['usage']): void => {
    const purchase = purchaseOf({ amount: authorized, operation: 'chat' })
    const reserved: PaymentRecord = { ...makeRecord(purchase.key, Date.now()), ...purchase }
    const receipt = { ...receiptOf(purchase), amount: charged }
    metrics.settle(reserved, {
      ...reserved,
      state: 'settled',
      amount: charged,
      receipt,
      ...(usage === undefined ? {} : { usage }),
    })
  }
  const tokens = (count: number, amount: string): PaymentRecord['usage'] => [
    { part: 'base', amount: '0.0002' },
    { part: 'value_of /usage/total', count, amount },
  ]
  sell('50000', '700', tokens(1000, '0.0005'))
  sell('50000', '1200', tokens(2000, '0.001'))
  sell('5000', '5000')
  const { text } = await metrics.read()
  const labels = 'operation="chat",network="eip155:8453"'
  for (const line of [
    `ratecard_payments_total{${labels},outcome="settled"} 3`,
    `ratecard_metered_payments_total{${labels}} 2`,
    'ratecard_metered_usage_total{operation="chat",part="value_of /usage/total"} 3000',
    `ratecard_revenue_total{${labels},token="USDC"} 0.0069`,
    `ratecard_authorized_total{${labels},token="USDC"} 0.105`,
  ])
    t.ok(text.split('\n').includes(line), line)
})

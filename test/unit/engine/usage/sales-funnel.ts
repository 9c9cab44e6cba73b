import t from 'tap'
import { isProbe, type AccessRecord } from '../../../../src/engine/base/access-record.ts'
import { saleFigures, SalesFunnel } from '../../../../src/engine/usage/sales-funnel.ts'
import { openSimulatedLedger, StoredData } from '../../../simulate/store.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'

const NOW = 1_800_000_000_000
const TODAY = '2027-01-15'
const OPERATION = makeRecord('x402:one').operation

function access(changes: Partial<AccessRecord>): AccessRecord {
  return {
    requestId: 'request 1',
    method: 'GET',
    place: '/paid/ping',
    status: 402,
    outcome: 'payment_required',
    detail: undefined,
    cause: undefined,
    price: undefined,
    cached: undefined,
    customer: undefined,
    sale: undefined,
    ms: 1,
    payment: undefined,
    ...changes,
  }
}

function openFunnel(own: readonly string[] = []) {
  const { counts } = openSimulatedLedger(new StoredData(), () => NOW)
  const funnel = new SalesFunnel({ counts, now: () => NOW, own: () => new Set(own) })
  const read = async (): Promise<Record<string, number>> => {
    await funnel.write()
    const figures = saleFigures(await counts.read(TODAY, TODAY))
    return Object.fromEntries(
      figures.map(({ of, count }) => [
        of.kind === 'step' ? `${of.visitor} ${of.step}` : `${of.kind} ${of.reason}`,
        count,
      ]),
    )
  }
  return { funnel, read }
}

t.test('counts each step of a sale once, over all that is written', async (t) => {
  const { funnel, read } = openFunnel()
  const sale = { operation: OPERATION, paid: false, probe: false }
  funnel.observe(access({ sale }))
  funnel.observe(access({ sale: { ...sale, wouldFail: 'parameters_invalid: day (missing)' } }))
  funnel.observe(access({ sale: undefined }))
  t.strictSame(await read(), { 'other asked': 2, 'would_fail parameters_invalid: day (missing)': 1 })
  const reserved = makeRecord('x402:one', NOW)
  const { network, payer, amount, id } = reserved
  const receipt = { transaction: '0x01', network, payer, amount }
  const settled = nextRecord(reserved, { state: 'settled', receipt })
  const sent = nextRecord(settled, { state: 'sent' })
  funnel.settle(reserved, settled)
  funnel.settle(settled, sent)
  funnel.settle(sent, nextRecord(sent))
  funnel.observe(access({ status: 200, outcome: 'ok', payment: id, sale: { ...sale, paid: true } }))
  t.match(await read(), { 'other asked': 2, 'other signed': 1, 'other settled': 1, 'other delivered': 1 })
})

t.test('counts refused payments by their reason', async (t) => {
  const { funnel, read } = openFunnel()
  const sale = { operation: OPERATION, paid: true, probe: false }
  funnel.observe(access({ outcome: 'payer_denied', status: 403, sale }))
  funnel.observe(access({ outcome: 'payment_pending', status: 503, payment: 'pay_1', sale }))
  t.strictSame(await read(), { 'other signed': 2, 'refused payer_denied': 1 })
})

t.test('counts probes and own wallets apart', async (t) => {
  const reserved = makeRecord('x402:one', NOW)
  const { funnel, read } = openFunnel([reserved.payer])
  funnel.observe(access({ sale: { operation: OPERATION, paid: false, probe: true, wouldFail: 'x' } }))
  const { network, payer, amount, id } = reserved
  const receipt = { transaction: '0x01', network, payer, amount }
  funnel.settle(reserved, nextRecord(reserved, { state: 'settled', receipt }))
  const sale = { operation: OPERATION, paid: true, probe: false }
  funnel.observe(access({ status: 200, outcome: 'ok', payment: id, sale }))
  t.strictSame(await read(), { 'probe asked': 1, 'own settled': 1, 'own signed': 1 })
})

t.test('takes a crawler by its own words for a probe, and nobody else', async (t) => {
  for (const agent of [
    'Googlebot/2.1',
    'x402scan-crawler',
    'UptimeRobot/2.0',
    'Mozilla/5.0 (compatible; bingbot/2.0)',
  ])
    t.ok(isProbe('GET', agent), agent)
  for (const agent of [
    '',
    'curl/8.5',
    'Mozilla/5.0 Chrome/130',
    'node',
    'python-httpx/0.27',
    'robotics-app/1',
  ])
    t.notOk(isProbe('GET', agent), agent)
  t.ok(isProbe('HEAD', 'curl/8.5'))
})

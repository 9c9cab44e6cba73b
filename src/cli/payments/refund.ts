import { randomBytes } from 'node:crypto'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import { isRefundDue } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../engine/ledger/payment-record.ts'
import { formatPrice, parsePrice, toMicros } from '../../engine/base/money.ts'
import { refundPayment } from '../../engine/refunds/refund.ts'
import type { RefundResult } from '../../engine/refunds/refund-result.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { clean } from '../../command-line/printable.ts'
import { readRefundKeys } from '../../sandbox/sandbox.ts'
import { chainsOf, dataDirOf, withLedger } from './open-ledger.ts'
import { refundKeysOf } from './refund-keys.ts'
import { rowOf, type PaymentRow } from './payment-row.ts'

/** What became of one refund, as `--json` prints it. */
interface RefundRow extends Pick<
  PaymentRow,
  'payment' | 'amount' | 'token' | 'network' | 'operation' | 'payer'
> {
  readonly result: RefundResult['kind'] | 'would_send'
  /** Transaction of the refund; null when none was sent. */
  readonly transaction: string | null
  readonly reason: string | null
}

/** Exits 1 when one of the refunds was not sent, or is in no block yet. */
export async function refundPayments(call: Call): Promise<number> {
  const { flags, env, terminal } = call
  const isDryRun = flags.given('dry-run')
  const max = maxOf(flags.text('max'))
  const { rpcUrls, svmRpcUrls } = chainsOf(call)
  const keys = flags.given('sandbox') ? readRefundKeys({ directory: dataDirOf(call) }) : refundKeysOf(env)
  if (keys.evm === undefined && keys.svm === undefined && !isDryRun)
    throw new UsageError(
      'REFUND_PRIVATE_KEY is not set: the key of the account that the money is sent from; on Solana, it is SOLANA_REFUND_PRIVATE_KEY',
    )
  return withLedger(call, async (ledger) => {
    const records = await entriesOf(call, ledger)
    // Every token of the table is a dollar of six decimals.
    const total = records.reduce((sum, { receipt }) => sum + BigInt(receipt?.amount ?? 0), 0n)
    if (total > max) {
      terminal.err(
        `ratecard payments refund: this would send ${formatPrice(toMicros(total))} USD, more than --max: nothing was sent`,
      )
      return 1
    }
    const owner = `refund-${randomBytes(6).toString('hex')}`
    const settings = { ...systemRuntime, ledger, rpcUrls, svmRpcUrls, keys, owner }
    const rows: RefundRow[] = []
    for (const record of records) {
      // One after the other: they use one account.
      const result = isDryRun ? undefined : await refund(settings, record)
      const row = refundRow(record, result)
      rows.push(row)
      if (!flags.given('json')) terminal.out(sentenceOf(row))
    }
    if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else if (rows.length === 0) terminal.out('no refund is due')
    return rows.every(({ result }) => result === 'sent' || result === 'would_send') ? 0 : 1
  })
}

async function refund(
  settings: Parameters<typeof refundPayment>[0],
  record: PaymentRecord,
): Promise<RefundResult> {
  try {
    return await refundPayment(settings, record)
  } catch (fault) {
    return { kind: 'refused', reason: fault instanceof Error ? fault.message : String(fault) }
  }
}

async function entriesOf({ positionals, flags }: Call, ledger: Ledger): Promise<readonly PaymentRecord[]> {
  const [id] = positionals
  if ((id === undefined) === !flags.given('due'))
    throw new UsageError('name one payment by its id, or --due for every refund that is due')
  if (id !== undefined) {
    const record = await ledger.find(id)
    if (record === undefined) throw new UsageError(`this ledger has no payment ${clean(id)}`)
    return [record]
  }
  const due: PaymentRecord[] = []
  for await (const record of ledger.records()) if (isRefundDue(record, ledger.now())) due.push(record)
  return due
}

function maxOf(text: string | undefined): bigint | number {
  if (text === undefined) return Infinity
  const parsed = parsePrice(text)
  if (parsed.kind === 'price') return parsed.value
  throw new UsageError(`--max takes dollars, such as 5 or 0.25; not "${text}"`)
}

function refundRow(record: PaymentRecord, result: RefundResult | undefined): RefundRow {
  const { payment, amount, token, network, operation, payer } = rowOf(record)
  return {
    payment,
    amount,
    token,
    network,
    operation,
    payer,
    result: result?.kind ?? 'would_send',
    transaction: result === undefined || result.kind === 'refused' ? null : clean(result.hash),
    reason: result?.kind === 'refused' ? clean(result.reason) : null,
  }
}

function sentenceOf({ payment, amount, token, payer, result, transaction, reason }: RefundRow): string {
  const money = `${amount} ${token} to ${payer}`
  switch (result) {
    case 'would_send':
      return `${payment}: would send ${money}`
    case 'sent':
      return `${payment}: sent ${money} in ${transaction}`
    case 'unconfirmed':
      return `${payment}: sent ${money} in ${transaction}, which is in no block yet: run the command again`
    case 'refused':
      return `${payment}: not refunded: ${reason}`
  }
}

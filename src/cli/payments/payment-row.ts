import { chargeStatus } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord, State } from '../../engine/ledger/payment-record.ts'
import { formatDecimal } from '../../engine/base/money.ts'
import { amountOf, findAnyNetwork } from '../../engine/base/networks.ts'
import { clean } from '../../command-line/printable.ts'

/** One payment in a list; nothing of what was sold, and nothing that works as a secret. */
export interface PaymentRow {
  readonly payment: string
  /** When it was first taken, ISO 8601. */
  readonly time: string
  readonly state: State
  readonly charged: 'no' | 'yes' | 'unknown'
  /** In units of the token, all decimals. */
  readonly amount: string
  /** The most that the payer has signed for, in the same units; null where that is the amount. */
  readonly authorized: string | null
  /** What a metered amount consists of: `prompt_tokens = 1000: 0.0005 USD`. */
  readonly usage: string | null
  readonly token: string
  readonly protocol: string
  readonly network: string
  readonly operation: string
  readonly payer: string
  readonly transaction: string | null
  readonly refund: RefundFacts | null
}

/** What is owed back, or was sent back. */
type RefundFacts =
  | { readonly state: 'due'; readonly reason: string }
  | {
      readonly state: 'sending' | 'sent'
      readonly transaction: string
      /** The account that the money is sent from. */
      readonly sender: string | null
    }

export function rowOf(record: PaymentRecord): PaymentRow {
  const { id, state, protocol, network, asset, operation, payer, receipt } = record
  const atomic = receipt?.amount ?? record.amount
  const { amount, token } = spellAmount(BigInt(atomic), network, asset)
  const most = spellAmount(BigInt(record.authorizedAmount), network, asset)
  return {
    payment: id,
    time: isoTime(record.createdAt),
    state,
    charged: chargeStatus(record),
    amount,
    authorized: record.authorizedAmount === atomic ? null : most.amount,
    usage: usageOf(record),
    token,
    protocol,
    network,
    operation: clean(operation),
    payer: clean(payer),
    transaction: receipt === undefined ? null : clean(receipt.transaction),
    refund: refundOf(record),
  }
}

/** What a metered amount consists of. */
export function usageOf({ usage }: PaymentRecord): string | null {
  if (usage === undefined) return null
  const spelt = usage.map(({ part, count, amount }) =>
    count === undefined ? `${part}: ${amount} USD` : `${part} = ${count}: ${amount} USD`,
  )
  return clean(spelt.join(', '))
}

function refundOf({ refund }: PaymentRecord): RefundFacts | null {
  if (refund === undefined) return null
  if (refund.kind === 'due') return { state: refund.kind, reason: refund.reason }
  const { kind, hash, sender } = refund
  return { state: kind, transaction: clean(hash), sender: sender === undefined ? null : clean(sender) }
}

/** Decimals of the coin that fees are recorded in, on every network. */
const FEE_DECIMALS = 18

/** What our account has paid the network, in units of its coin: `0.000010001 SOL`; null when another account paid. */
export function feeOf({ network, receipt }: PaymentRecord): string | null {
  const coin = findAnyNetwork(network)?.coin
  if (receipt?.gasCost === undefined || coin === undefined) return null
  return `${formatDecimal(BigInt(receipt.gasCost), FEE_DECIMALS)} ${coin}`
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** In units of the token, for a terminal. */
export function spellAmount(
  atomic: bigint,
  network: string,
  asset: string,
): { readonly amount: string; readonly token: string } {
  const { amount, token } = amountOf(atomic, network, asset)
  return { amount, token: clean(token) }
}

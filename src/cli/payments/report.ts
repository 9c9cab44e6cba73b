import type { Difference, JsonObject, OnchainPayment, Statement } from '../../engine/index.ts'
import { findingOf } from './advice.ts'
import { isoTime, rowOf, spellAmount } from './row.ts'

/** A reconciliation for programs; names are part of the interface. */
export function reportOf(statements: readonly Statement[], since: number): JsonObject {
  return { since: isoTime(since), changed: 'nothing', networks: statements.map(networkOf) }
}

function networkOf(statement: Statement): JsonObject {
  const { kind, protocol, network, asset } = statement
  const head = { network, protocol, asset, status: kind }
  if (statement.kind === 'unchecked') return { ...head, reason: statement.reason }
  const { payees, span, agreed, underway, transfers, differences } = statement
  return {
    ...head,
    payees,
    blocks: { from: Number(span.from), to: Number(span.to) },
    agreed,
    underway,
    other_transfers: { count: transfers.count, amount: spellAmount(transfers.amount, network, asset).amount },
    differences: differences.map((difference) => differenceOf(difference, network, asset)),
  }
}

function differenceOf(difference: Difference, network: string, asset: string): JsonObject {
  const { says, advice } = findingOf(difference, network, asset)
  const payment = paymentOf(difference)
  return {
    kind: difference.kind,
    ledger: difference.kind === 'not_in_ledger' ? null : { ...rowOf(difference.entry) },
    chain: {
      shows: 'status' in difference ? difference.status.kind : 'moved',
      ...(payment === undefined ? {} : spellPayment(payment, network, asset)),
    },
    ...(difference.kind === 'differs' ? { fields: difference.fields } : {}),
    says,
    advice,
  }
}

function paymentOf(difference: Difference): OnchainPayment | undefined {
  if ('payment' in difference) return difference.payment
  return difference.status.kind === 'moved' ? difference.status.payment : undefined
}

function spellPayment(
  { transaction, block, payer, payee, amount }: OnchainPayment,
  network: string,
  asset: string,
): JsonObject {
  return { transaction, block: Number(block), payer, payee, ...spellAmount(amount, network, asset) }
}

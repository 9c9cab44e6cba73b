import type { Difference, JsonObject, Sighting, Statement } from '../../engine/index.ts'
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
  const sighting = sightingOf(difference)
  return {
    kind: difference.kind,
    ledger: difference.kind === 'not_in_ledger' ? null : { ...rowOf(difference.entry) },
    chain: {
      shows: 'fate' in difference ? difference.fate.kind : 'moved',
      ...(sighting === undefined ? {} : spellSighting(sighting, network, asset)),
    },
    ...(difference.kind === 'differs' ? { fields: difference.fields } : {}),
    says,
    advice,
  }
}

function sightingOf(difference: Difference): Sighting | undefined {
  if ('sighting' in difference) return difference.sighting
  return difference.fate.kind === 'moved' ? difference.fate.sighting : undefined
}

function spellSighting(
  { transaction, block, payer, payee, amount }: Sighting,
  network: string,
  asset: string,
): JsonObject {
  return { transaction, block: Number(block), payer, payee, ...spellAmount(amount, network, asset) }
}

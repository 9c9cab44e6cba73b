import type { Route } from '../catalog/catalog.ts'
import type { DayFigures, Funnel } from '../documents/standing.ts'
import { add, NOTHING, type Counts } from '../tally/counts.ts'
import type { Days } from '../tally/daybook.ts'
import { answersIn } from '../tally/latency.ts'
import { freeName, isSold, soldName } from '../tally/names.ts'

/** Where a route is counted: what is sold with the tools of the same operation. */
export function nameOfRoute({ kind, path, operation }: Route): string {
  return kind === 'paid' ? soldName(operation.id) : freeName(path)
}

/** Of one name over all days. */
export function totalOf(days: Days, name: string): Counts {
  return total(days.flatMap(({ counts }) => counts.get(name) ?? []))
}

/** Everything, also what the catalog does not have any more. */
export function totalOfAll(days: Days): Counts {
  return total(days.flatMap(({ counts }) => [...counts.values()]))
}

export function funnelOf({ stages }: Counts): Funnel {
  const { unpaid, presented, verified, settled, sent, uncharged } = stages
  return { unpaid, presented, verified, settled, sent, uncharged }
}

export function dayFigures({ date, counts }: Days[number]): DayFigures {
  const of = (isMeant: (name: string) => boolean): Counts =>
    total([...counts].flatMap(([name, each]) => (isMeant(name) ? [each] : [])))
  return {
    date,
    ...funnelOf(total([...counts.values()])),
    paid_answers: answersIn(of(isSold).latency),
    free_answers: answersIn(of((name) => !isSold(name)).latency),
  }
}

function total(counts: readonly Counts[]): Counts {
  return counts.reduce(add, NOTHING)
}

import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { countOf } from '../../engine/base/words.ts'
import { columnsFor, painterFor } from '../terminal-text.ts'

/** The result of one check before real money is taken. */
export interface CheckResult {
  /** `warn`: it may be intended; an operator should confirm it. */
  readonly level: 'ok' | 'warn' | 'fails'
  readonly subject: string
  /** What was found, and what to do about it. */
  readonly message: string
}

export const ok = (subject: string, message: string): CheckResult => ({ level: 'ok', subject, message })
export const warns = (subject: string, message: string): CheckResult => ({ level: 'warn', subject, message })
export const fails = (subject: string, message: string): CheckResult => ({ level: 'fails', subject, message })

const COLORS = { ok: 'green', warn: 'yellow', fails: 'red' } as const

/** Prints the results as a table or as JSON; returns the exit code: 1 when a check fails. */
export function printResults(call: Call, results: readonly CheckResult[]): number {
  const { flags, terminal } = call
  const count = (level: CheckResult['level']): number => results.filter((each) => each.level === level).length
  if (flags.given('json'))
    terminal.out(JSON.stringify({ at: new Date(systemRuntime.now()).toISOString(), results }, null, 2))
  else {
    const paint = painterFor(call)
    terminal.out(
      columnsFor(
        terminal,
        results.map(({ level, subject, message }) => [paint(COLORS[level], level), subject, message]),
      ),
    )
    terminal.out(`\n${count('fails')} failed, ${countOf(count('warn'), 'warning')}, ${count('ok')} ok`)
  }
  return count('fails') > 0 ? 1 : 0
}

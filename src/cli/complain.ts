import { LedgerError } from '../engine/index.ts'
import type { Terminal } from './command.ts'

/** The same trouble is told once in this time: a store that is away fails every request. */
const QUIET_MS = 30_000

/**
 * Tells the operator of faults nobody has asked for: a stack for what is a mistake of ours, a line for what is not.
 * `hide` takes out what no log may hold: libraries and handlers put addresses and keys into their messages.
 */
export function createComplaint(
  { err }: Pick<Terminal, 'err'>,
  now: () => number,
  hide: (text: string) => string,
): (fault: unknown) => void {
  const told = new Map<string, number>()
  return (fault) => {
    const text = hide(
      fault instanceof LedgerError
        ? `ledger: ${fault.message}`
        : `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`,
    )
    for (const [line, at] of told) if (now() - at >= QUIET_MS) told.delete(line)
    if (told.has(text)) return
    told.set(text, now())
    err(text)
  }
}

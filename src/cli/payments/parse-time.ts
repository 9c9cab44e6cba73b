import { parseDuration } from '../../engine/base/duration.ts'
import { UsageError } from '../../command-line/usage-error.ts'

const DATE =
  /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d))?$/

/**
 * A time as people give it: how long ago (`24h`, `7d`), a day (its first moment in UTC), or a moment with its zone.
 * Milliseconds since the epoch; throws `UsageError` for anything else.
 *
 * @example
 * parseTime('until', '2026-10-01', now)
 */
export function parseTime(flag: string, text: string, now: number): number {
  const ago = parseDuration(text)
  const time = ago === undefined ? parseDate(text) : now - ago
  if (time === undefined) {
    const forms = '24h, 7d, 2026-10-01 or 2026-10-01T08:00:00Z'
    throw new UsageError(`--${flag} takes how long ago or a date, such as ${forms}; not "${text}"`)
  }
  return time
}

/** The same for a time that cannot lie in the future. */
export function parsePastTime(flag: string, text: string, now: number): number {
  const time = parseTime(flag, text, now)
  if (time > now) throw new UsageError(`--${flag} ${text} is in the future`)
  return time
}

/** Undefined also for a day that no calendar has, which Node.js takes for one of the next month. */
function parseDate(text: string): number | undefined {
  const day = DATE.exec(text)?.[1]
  if (day === undefined || Number.isNaN(Date.parse(day))) return undefined
  return new Date(day).toISOString().startsWith(day) ? Date.parse(text) : undefined
}

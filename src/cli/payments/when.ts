import { parseDuration } from '../../engine/internal.ts'
import { UsageError } from '../command.ts'

const DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(?:Z|([+-])(\d{2}):(\d{2})))?$/

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
  if (time > now) throw new UsageError(`--${flag} ${text} lies in the future`)
  return time
}

/** Undefined also for a day that no calendar has: 2026-02-30 is a slip, and not the second of March. */
function parseDate(text: string): number | undefined {
  const match = DATE.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(numberOf)
  const ms = numberOf(match[7]?.padEnd(3, '0'))
  const [zoneHour, zoneMinute] = [numberOf(match[9]), numberOf(match[10])]
  const date = new Date(Date.UTC(year, month - 1, day))
  const real = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  if (!real || hour > 23 || minute > 59 || second > 59 || zoneHour > 14 || zoneMinute > 59) return undefined
  const offset = (zoneHour * 60 + zoneMinute) * 60_000 * (match[8] === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + ms - offset
}

function numberOf(digits: string | undefined): number {
  return digits === undefined ? 0 : Number(digits)
}

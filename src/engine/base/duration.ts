const UNITS = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
} as const
const FORM = /^([1-9][0-9]{0,6})(ms|s|m|h|d)$/

/**
 * Milliseconds of a duration as the catalog writes it: `500ms`, `60s`, `10m`, `24h`, `7d`; undefined when it is none.
 *
 * @example
 * parseDuration('10m') // 600000
 */
export function parseDuration(text: string): number | undefined {
  const match = FORM.exec(text)
  if (match === null) return undefined
  const [, count, unit] = match
  return Number(count) * UNITS[unit as keyof typeof UNITS]
}

/** The shortest exact spelling, for people: 600000 → `10m`. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (ms >= UNITS[unit] && ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`
  }
  return `${ms}ms`
}

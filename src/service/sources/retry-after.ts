const LONGEST_SECONDS = 3600

/**
 * Seconds to wait by a Retry-After header (RFC 9110 §10.2.3: seconds or a date), from 1 to 3600; undefined when there
 * is none that can be read.
 *
 * @example
 * parseRetryAfter('120', new Date()) // 120
 */
export function parseRetryAfter(header: string | null, now: Date): number | undefined {
  if (header === null) return undefined
  const text = header.trim()
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now.getTime()) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.min(LONGEST_SECONDS, Math.max(1, seconds))
}

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
  return Number.isNaN(seconds) ? undefined : within(seconds)
}

/** The same from a Ratelimit-Reset header as Twitch sends it: the second, since the epoch, from which it answers again. */
export function parseReset(header: string | null, now: Date): number | undefined {
  if (header === null || !/^\d{9,11}$/.test(header.trim())) return undefined
  return within(Math.ceil(Number(header) - now.getTime() / 1000))
}

function within(seconds: number): number {
  return Math.min(LONGEST_SECONDS, Math.max(1, seconds))
}

import {
  staleWarning,
  type Failure,
  type JsonObject,
  type Part,
  type Source,
  type Warning,
} from 'ratecard/handler'

/** A part of a bundle: the fields its own route would give, how old they are, and what to know about them. */
export function partRow({ answer, at, stale }: Part, now: Date): JsonObject {
  const warnings = [...(answer.warnings ?? []), ...(stale ? [staleWarning(at, now)] : [])]
  return {
    fetched_at: at.toISOString(),
    warnings: warnings.map((warning) => ({ ...warning })),
    ...answer.body,
  }
}

/** Says which part is missing, and why. */
export function missing(what: string, { code, detail }: Failure): Warning {
  return {
    code: code === 'not_configured' ? code : 'upstream_unavailable',
    message: `Without ${what}: ${detail}`,
  }
}

/** Every source once. */
export function sourcesOf(parts: readonly Part[]): readonly Source[] {
  const sources = parts.flatMap(({ answer }) => answer.source)
  return [...new Map(sources.map((source) => [source.name, source])).values()]
}

/** A bundle is as old as its oldest part. */
export function oldest(parts: readonly Part[], now: Date): Date {
  return new Date(Math.min(now.getTime(), ...parts.map(({ at }) => at.getTime())))
}

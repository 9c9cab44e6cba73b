import type { JSONSchemaType } from 'ajv/dist/2020.js'
import type { Context, KeptValue } from 'ratecard/handler'
import { compileShape } from '../../sources/answer-shape.ts'
import type { Estimate, SteamSpy } from '../../sources/steamspy.ts'

/** The cached estimate of SteamSpy; null when SteamSpy does not know the app. */
export type CachedEstimate = { readonly estimate?: Estimate | null }

const DAY = 24 * 60 * 60_000
/** SteamSpy counts once a day, and an estimate of last week is better than none. */
const KEEPING = { ttl: DAY, staleIfError: 6 * DAY }

const COUNT = { type: 'integer' } as const
const OPTIONAL_COUNT = { ...COUNT, nullable: true } as const
const ESTIMATE: JSONSchemaType<Estimate> = {
  type: 'object',
  required: ['owners', 'tags'],
  properties: {
    owners: { type: 'object', required: ['low', 'high'], properties: { low: COUNT, high: COUNT } },
    averageForever: OPTIONAL_COUNT,
    medianForever: OPTIONAL_COUNT,
    peakYesterday: OPTIONAL_COUNT,
    tags: { type: 'array', items: { type: 'string' } },
  },
}
const isCachedEstimate = compileShape<CachedEstimate>({
  type: 'object',
  properties: { estimate: { ...ESTIMATE, nullable: true } },
})

/** The estimate of the day. */
export function readEstimate(
  steamSpy: SteamSpy,
  appid: number,
  keep: Context['keep'],
): Promise<KeptValue<CachedEstimate>> {
  return keep(`steamspy/2/${appid}`, KEEPING, isCachedEstimate, async (signal) => ({
    estimate: (await steamSpy.estimate(appid, signal)) ?? null,
  }))
}

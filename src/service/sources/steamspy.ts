import type { Source } from 'ratecard/handler'
import { JsonSource, type SourceOptions } from './json-source.ts'
import { compileShape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

/** The site itself; a caller replaces what differs. */
export const LIVE_STEAMSPY: SourceOptions = {
  source: { name: 'SteamSpy', url: 'https://steamspy.com/' },
  baseUrl: 'https://steamspy.com',
  timeoutMs: 4000,
}

/** What SteamSpy estimates of one app, once a day. A type, not an interface, so that it counts as JSON. */
export type Estimate = {
  readonly owners: { readonly low: number; readonly high: number }
  /** Minutes over the whole time. Of most apps SteamSpy has no play times any more and says zero: here, null. */
  readonly averageForever?: number | null
  readonly medianForever?: number | null
  /** Most players of yesterday at one moment. */
  readonly peakYesterday?: number | null
  /** The most used first. */
  readonly tags: readonly string[]
}

interface SpiedApp {
  readonly appid: number
  readonly name?: string | null
  readonly owners: string
  readonly average_forever?: number | null
  readonly median_forever?: number | null
  readonly ccu?: number | null
  /** Votes by name; an empty list when there are none. */
  readonly tags?: Readonly<Record<string, number>> | readonly number[] | null
}

/** Takes the place of the app whose developer wants no figures shown. */
const HIDDEN = 999999
const OWNERS = /^([\d,]{1,15}) \.\. ([\d,]{1,15})$/
const MOST_TAGS = 20
const COUNT = { type: 'integer', minimum: 0 } as const
const OPTIONAL_COUNT = { ...COUNT, nullable: true } as const

const APP = compileShape<SpiedApp>(
  {
    type: 'object',
    required: ['appid', 'owners'],
    properties: {
      appid: { type: 'integer' },
      name: { type: 'string', nullable: true },
      owners: { type: 'string', pattern: OWNERS.source },
      average_forever: OPTIONAL_COUNT,
      median_forever: OPTIONAL_COUNT,
      ccu: OPTIONAL_COUNT,
      tags: {
        type: ['object', 'array'],
        nullable: true,
        anyOf: [
          { type: 'object', required: [], additionalProperties: COUNT },
          { type: 'array', items: COUNT, maxItems: 0 },
        ],
      },
    },
  },
  { expected: ['ccu', 'tags'] },
)

/** SteamSpy: estimates from a sample of players. Throws `Failure` as `JsonSource` does. */
export class SteamSpy {
  readonly source: Source
  readonly #site: JsonSource

  constructor({ source, baseUrl, timeoutMs }: SourceOptions, runtime: Runtime, records: MetricsBySource) {
    this.source = source
    // One call a second is asked for; five at once are the titles of one dossier.
    const rate = { perSecond: 1, burst: 5 }
    this.#site = new JsonSource(
      { name: 'SteamSpy', baseUrl, rate, timeoutMs },
      runtime,
      records.of('steamspy'),
    )
  }

  /** Its estimate; undefined when it does not know the app, or may not show it. */
  async estimate(appid: number, signal: AbortSignal): Promise<Estimate | undefined> {
    const query = { request: 'appdetails', appid: String(appid) }
    const app = await this.#site.find({ path: '/api.php', query, shape: APP }, signal)
    if (app === undefined || app.appid === HIDDEN || !app.name) return undefined
    const [, low = '', high = ''] = OWNERS.exec(app.owners) ?? []
    return {
      owners: { low: whole(low), high: whole(high) },
      averageForever: app.average_forever || null,
      medianForever: app.median_forever || null,
      peakYesterday: app.ccu ?? null,
      tags: Object.entries(app.tags ?? {})
        .toSorted(([, one], [, other]) => other - one)
        .slice(0, MOST_TAGS)
        .map(([tag]) => tag),
    }
  }
}

function whole(text: string): number {
  return Number(text.replaceAll(',', ''))
}

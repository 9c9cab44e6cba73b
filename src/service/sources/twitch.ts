import type { Source } from 'ratecard/handler'
import { JsonSource, type SourceOptions } from './json-source.ts'
import type { MetricsBySource } from './source-metrics.ts'
import { CATEGORIES, STREAMS, type Category, type Stream } from './twitch/shapes.ts'
import type { TwitchAccess } from './twitch/access-token.ts'
import type { Runtime } from './source-runtime.ts'

/** Twitch itself; a caller replaces what differs. */
export const LIVE_TWITCH: SourceOptions = {
  source: { name: 'Twitch', url: 'https://www.twitch.tv/' },
  baseUrl: 'https://api.twitch.tv/helix',
  timeoutMs: 4000,
}

/** Most entries of one page. */
export const PAGE = 100

/** Live streams, the most watched first, and where the next page begins. */
export interface StreamPage {
  readonly streams: readonly Stream[]
  readonly next: string | undefined
}

/** Twitch, read through its Helix interface. Throws `Failure` as `TwitchAccess.ask` does. */
export class Twitch {
  readonly source: Source
  readonly #access: TwitchAccess
  readonly #helix: JsonSource

  constructor(
    { source, baseUrl, timeoutMs }: SourceOptions,
    access: TwitchAccess,
    runtime: Runtime,
    records: MetricsBySource,
  ) {
    this.source = source
    this.#access = access
    // 800 points a minute are allowed to one application; a question costs one.
    const rate = { perSecond: 10, burst: 100 }
    this.#helix = new JsonSource({ name: 'Twitch', baseUrl, rate, timeoutMs }, runtime, records.of('twitch'))
  }

  /** The most watched categories, in order; Twitch does not say by how many. */
  async categories(signal: AbortSignal): Promise<readonly Category[]> {
    const question = { path: '/games/top', query: { first: String(PAGE) }, shape: CATEGORIES }
    const { data } = await this.#access.ask(this.#helix, question, signal)
    return data
  }

  /** The most watched streams, of one category or of all. */
  async streams(
    { category, after }: { readonly category?: string; readonly after?: string | undefined },
    signal: AbortSignal,
  ): Promise<StreamPage> {
    const query = {
      first: String(PAGE),
      ...(category === undefined ? {} : { game_id: category }),
      ...(after === undefined ? {} : { after }),
    }
    const { data, pagination } = await this.#access.ask(
      this.#helix,
      { path: '/streams', query, shape: STREAMS },
      signal,
    )
    // Twitch marks with another type what it could not look up.
    return { streams: data.filter(({ type }) => type === 'live'), next: pagination?.cursor || undefined }
  }
}

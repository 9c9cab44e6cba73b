import type { Source } from 'ratecard/handler'
import { EXTERNAL, GAMES, TIMES, type Game, type TimeToBeat } from './igdb/shapes.ts'
import { JsonSource, type SourceOptions } from './json-source.ts'
import type { Shape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { TwitchAccess } from './twitch/access-token.ts'
import type { Runtime } from './source-runtime.ts'

/** IGDB itself; a caller replaces what differs. */
export const LIVE_IGDB: SourceOptions = {
  source: { name: 'IGDB', url: 'https://www.igdb.com/' },
  baseUrl: 'https://api.igdb.com/v4',
  timeoutMs: 4000,
}

const FIELDS = `
  name, slug, url, summary, alternative_names.name, first_release_date, game_type.type, genres.name, themes.name, game_modes.name,
  player_perspectives.name, platforms.name, franchises.name, cover.image_id, websites.url,
  involved_companies.company.name, involved_companies.developer, involved_companies.publisher,
  rating, rating_count, aggregated_rating, aggregated_rating_count, total_rating, total_rating_count,
  external_games.uid, external_games.external_game_source,
  similar_games.name, similar_games.slug, similar_games.total_rating, similar_games.first_release_date
`.replace(/\s+/g, '')
const CANDIDATES = 10
/** What IGDB calls the game store among its external sources. */
export const STEAM = 1

/** The game database of Twitch. Throws `Failure` as `TwitchAccess.ask` does. */
export class Igdb {
  readonly source: Source
  readonly #access: TwitchAccess
  readonly #api: JsonSource

  constructor(
    { source, baseUrl, timeoutMs }: SourceOptions,
    access: TwitchAccess,
    runtime: Runtime,
    records: MetricsBySource,
  ) {
    this.source = source
    this.#access = access
    const rate = { perSecond: 4, burst: 4 }
    this.#api = new JsonSource({ name: 'IGDB', baseUrl, rate, timeoutMs }, runtime, records.of('igdb'))
  }

  /** Games that a name may mean, by the order of IGDB's own search; editions are left to their games. */
  search(name: string, signal: AbortSignal): Promise<readonly Game[]> {
    const text = `search "${escape(name)}"; fields ${FIELDS}; where version_parent = null; limit ${CANDIDATES};`
    return this.#ask('/games', text, GAMES, signal)
  }

  /** The games that an app id of the game store belongs to: mostly one, none for an app that IGDB does not know. */
  async ofStoreApp(appid: number, signal: AbortSignal): Promise<readonly Game[]> {
    // Asked of the entries themselves: a condition on games would take the id from one store and the source from another.
    const where = `external_game_source = ${STEAM} & uid = "${appid}"`
    const entries = await this.#ask(
      '/external_games',
      `fields game; where ${where}; limit ${CANDIDATES};`,
      EXTERNAL,
      signal,
    )
    if (entries.length === 0) return []
    const ids = entries.map(({ game }) => game).join(',')
    return this.#ask('/games', `fields ${FIELDS}; where id = (${ids}); limit ${CANDIDATES};`, GAMES, signal)
  }

  /** Playing times of a game; empty without any. */
  timesToBeat(id: number, signal: AbortSignal): Promise<readonly TimeToBeat[]> {
    const text = `fields hastily,normally,completely,count; where game_id = ${id}; limit 1;`
    return this.#ask('/game_time_to_beats', text, TIMES, signal)
  }

  #ask<Answer>(path: string, text: string, shape: Shape<Answer>, signal: AbortSignal): Promise<Answer> {
    return this.#access.ask(this.#api, { path, query: {}, shape, post: { type: 'text/plain', text } }, signal)
  }
}

/** A name inside the quotes of a query: nothing in it ends them. */
function escape(name: string): string {
  return name.replace(/\p{Cc}+/gu, ' ').replace(/[\\"]/g, '\\$&')
}

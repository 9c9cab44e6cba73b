import {
  Failure,
  InvalidParameter,
  isJsonObject,
  staleWarning,
  type Context,
  type JsonObject,
  type KeptValue,
  type Part,
  type Warning,
} from 'ratecard/handler'
import { STEAM, type Igdb } from '../../sources/igdb.ts'
import {
  GAMES,
  TIMES,
  type Game,
  type Named,
  type SimilarGame,
  type TimeToBeat,
} from '../../sources/igdb/shapes.ts'
import { attempt } from '../../sources/attempt.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { fold, rankMatches, type Match } from './match.ts'

/** Also for a name without a match: repeating the search within the hour costs no call. */
const SEARCH = { ttl: 60 * 60_000, staleIfError: 24 * 60 * 60_000 }
/** Without its times the answer is not kept for a day. */
const PARTIAL = 5 * 60_000
const ALTERNATIVES = 5
/** Below it the answer may be another game, and the warning names the other candidates. */
const UNSURE = 0.8
const SUMMARY = 160
/** No summary is longer by much. */
const LONGEST_SUMMARY = 20_000
const PAGES = 'https://www.igdb.com/games/'
const COVERS = 'https://images.igdb.com/igdb/image/upload/t_cover_big/'

/** What the game database knows of the game that a name means. */
export function metadata(igdb: Igdb): HandlerWithPreview<'game/metadata'> {
  return {
    async run({ name }, context) {
      if (fold(name) === '') throw new InvalidParameter('name', 'name must not be blank')
      const found = await context.keep(`game/metadata/search/2/${fold(name)}`, SEARCH, GAMES, (limit) =>
        igdb.search(name, limit),
      )
      const [best, ...others] = rankMatches(name, found.value)
      if (best === undefined) throw new Failure('not_found', `No game found for name '${name}'`)
      const { warnings, body, ...answer } = await answerWith(igdb, best.game, found, context)
      return {
        ...answer,
        warnings: [...unsure(best, others, igdb), ...warnings],
        body: {
          query: name,
          match: {
            confidence: best.confidence,
            alternatives: others.slice(0, ALTERNATIVES).map(({ game }) => alternative(game)),
          },
          ...body,
        },
      }
    },
    preview,
  }
}

/** What the game database knows of an app of the store; undefined when it does not have its id. */
export type FindByApp = (appid: number, context: Context) => Promise<Part | undefined>

/** Finds a game by its id at the store: names are not unique, ids are. Throws `Failure` as `Igdb` does. */
export function metadataOfApp(igdb: Igdb): FindByApp {
  return async (appid, context) => {
    const found = await context.keep(`game/metadata/steam/2/${appid}`, SEARCH, GAMES, (limit) =>
      igdb.ofStoreApp(appid, limit),
    )
    // Editions may share the id of their game.
    const [best] = rankMatches('', found.value)
    if (best === undefined) return undefined
    const answer = await answerWith(igdb, best.game, found, context)
    return { answer, at: found.at, cached: false, stale: found.stale }
  }
}

/** The game as one part of an answer. */
async function answerWith(igdb: Igdb, game: Game, found: KeptValue<readonly Game[]>, context: Context) {
  const { now } = context
  const times = await readTimes(igdb, game.id, context)
  const stale = found.stale ? [staleWarning(found.at, now(), igdb.source.name)] : []
  return {
    source: [igdb.source],
    fetchedAt: found.at,
    // The age is counted from when the game was read.
    ...(times === 'unknown' ? { freshFor: now().getTime() - found.at.getTime() + PARTIAL } : {}),
    warnings: [...stale, ...(times === 'unknown' ? [timesMissing(igdb)] : [])],
    body: {
      game: describe(game, times === 'unknown' ? undefined : times),
      similar_games: (game.similar_games ?? []).map(similar),
    },
  }
}

/** A part that fails is left out: the rest is what was asked for. */
async function readTimes(
  igdb: Igdb,
  id: number,
  { keep }: Context,
): Promise<TimeToBeat | undefined | 'unknown'> {
  const times = await attempt(
    keep(`game/times/1/${id}`, SEARCH, TIMES, (signal) => igdb.timesToBeat(id, signal)),
  )
  return times.kind === 'failed' ? 'unknown' : times.value.value[0]
}

function describe(game: Game, times: TimeToBeat | undefined): JsonObject {
  const companies = game.involved_companies ?? []
  return {
    igdb_id: game.id,
    name: game.name,
    slug: game.slug ?? null,
    url: game.url ?? pageOf(game),
    game_type: game.game_type?.type.toLowerCase().replaceAll(/[^a-z]+/g, '_') ?? null,
    summary: game.summary?.slice(0, LONGEST_SUMMARY) ?? null,
    first_release_date: dateOf(game.first_release_date),
    genres: namesOf(game.genres),
    themes: namesOf(game.themes),
    game_modes: namesOf(game.game_modes),
    player_perspectives: namesOf(game.player_perspectives),
    platforms: namesOf(game.platforms),
    developers: namesOf(companies.filter(({ developer }) => developer).map(({ company }) => company)),
    publishers: namesOf(companies.filter(({ publisher }) => publisher).map(({ company }) => company)),
    franchises: namesOf(game.franchises),
    ratings: {
      user: ratingOf(game.rating, game.rating_count),
      critic: ratingOf(game.aggregated_rating, game.aggregated_rating_count),
      total: ratingOf(game.total_rating, game.total_rating_count),
    },
    time_to_beat_hours: times === undefined ? null : hoursOf(times),
    external_ids: { steam: storeIdOf(game) },
    websites: (game.websites ?? []).flatMap(({ url }) => (/^https?:\/\//.test(url) ? [url] : [])),
    cover_url: game.cover ? `${COVERS}${game.cover.image_id}.jpg` : null,
  }
}

function similar(game: SimilarGame): JsonObject {
  return {
    igdb_id: game.id,
    name: game.name,
    first_release_date: dateOf(game.first_release_date),
    total_rating: rounded(game.total_rating),
    url: pageOf(game),
  }
}

function alternative(game: Game): JsonObject {
  const date = dateOf(game.first_release_date)
  return { igdb_id: game.id, name: game.name, year: date === null ? null : Number(date.slice(0, 4)) }
}

function pageOf({ slug }: SimilarGame): string | null {
  return slug ? PAGES + encodeURIComponent(slug) : null
}

function dateOf(seconds: number | null | undefined): string | null {
  return seconds === null || seconds === undefined
    ? null
    : new Date(seconds * 1000).toISOString().slice(0, 10)
}

function namesOf(named: readonly Named[] | null | undefined): string[] {
  return [...new Set((named ?? []).map(({ name }) => name))]
}

function rounded(value: number | null | undefined): number | null {
  return value === null || value === undefined ? null : Number(value.toFixed(1))
}

function ratingOf(score: number | null | undefined, count: number | null | undefined): JsonObject {
  return { score: rounded(score), count: count ?? 0 }
}

function hoursOf({ hastily, normally, completely, count }: TimeToBeat): JsonObject {
  const hours = (seconds: number | null | undefined): number | null =>
    rounded(seconds ? seconds / 3600 : null)
  return {
    hastily: hours(hastily),
    normally: hours(normally),
    completely: hours(completely),
    reports: count ?? 0,
  }
}

function storeIdOf({ external_games }: Game): string | null {
  const entry = (external_games ?? []).find(
    ({ external_game_source: source, uid }) => source === STEAM && /^\d{1,10}$/.test(uid),
  )
  return entry?.uid ?? null
}

function unsure({ game, confidence }: Match, others: readonly Match[], { source }: Igdb): Warning[] {
  if (confidence >= UNSURE) return []
  const names = others.slice(0, ALTERNATIVES).map((other) => `'${other.game.name}'`)
  const message =
    `The database answers with '${game.name}', whose name is not the one asked for` +
    (names.length === 0 ? '' : `; other candidates: ${names.join(', ')}`)
  return [{ code: 'match_unsure', message, source: source.name }]
}

function timesMissing({ source }: Igdb): Warning {
  const message = 'The times to beat cannot be read now: time_to_beat_hours is null'
  return { code: 'upstream_unavailable', message, source: source.name }
}

/** What tells one game from another, and the beginning of its summary. */
function preview({ game = null }: JsonObject): JsonObject {
  if (!isJsonObject(game)) return {}
  const { name = null, first_release_date = null, genres = [], platforms = [], ratings, summary } = game
  const { total = null } = isJsonObject(ratings) ? ratings : {}
  return {
    game: {
      name,
      first_release_date,
      genres,
      platforms,
      ratings: { total },
      summary: typeof summary === 'string' ? cut(summary) : null,
    },
  }
}

function cut(text: string): string {
  const letters = Array.from(text)
  return letters.length <= SUMMARY ? text : `${letters.slice(0, SUMMARY - 1).join('')}…`
}

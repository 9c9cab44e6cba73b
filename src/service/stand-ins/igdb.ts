import { findGame, GAMES, type InventedGame } from './games.ts'
import { json, type StandIn } from './stand-in.ts'
import { igdbIdOf, isLetIn } from './twitch.ts'

const GENRES = ['Adventure', 'Strategy', 'Role-playing (RPG)', 'Simulator', 'Racing']
const COMPANIES = ['Lantern & Lathe', 'Nine Sparrows', 'Oddment Works']
const PLATFORMS = { windows: 'PC (Microsoft Windows)', mac: 'Mac', linux: 'Linux' } as const
/** The name that the catalog's example asks for finds something too, though another game. */
const EXAMPLE = 'Portal 2'
const UNAUTHORIZED = { message: 'Authorization Failure. Have you tried:', Tip: 'a token' }

/** `api.igdb.com/v4`: questions are a text in a language of its own. */
export const answerIgdb: StandIn = (request) => {
  const { path, method, body } = request
  if (method !== 'POST') return undefined
  if (!isLetIn(request)) return json(UNAUTHORIZED, 401)
  // As there, a text that breaks out of its quotes is a syntax error.
  const name = /^search "((?:[^"\\]|\\.)*)";/.exec(body)?.[1]?.replace(/\\(.)/g, '$1')
  if (path === '/games' && name !== undefined) return json(search(name))
  const appid = Number(/where external_game_source = 1 & uid = "(\d+)";/.exec(body)?.[1])
  if (path === '/external_games' && appid > 0) return json(entriesOf(appid))
  const ids = /where id = \(([\d,]+)\);/.exec(body)?.[1]?.split(',').map(Number)
  if (path === '/games' && ids !== undefined) return json(described(ids))
  const id = Number(/where game_id = (\d+);/.exec(body)?.[1])
  if (path === '/game_time_to_beats' && id > 0) return json(timesOf(id))
  return json([{ title: 'Syntax Error', status: 400, cause: 'Expecting a STRING as input' }], 400)
}

/** What a game is called at the store; the ids of examples answer too. */
function entriesOf(appid: number): readonly object[] {
  const place = GAMES.findIndex((game) => game === findGame(appid))
  return place < 0 ? [] : [{ id: 8, game: igdbIdOf(place) }]
}

function described(ids: readonly number[]): readonly object[] {
  return GAMES.flatMap((game, place) => (ids.includes(igdbIdOf(place)) ? [describe(game, place)] : []))
}

/** Any word in common is a hit, and the order is nobody's idea of the best match, as there. */
function search(name: string): readonly object[] {
  const words = wordsOf(name === EXAMPLE ? (GAMES[18]?.name ?? '') : name)
  const hits = GAMES.flatMap((game, place) =>
    wordsOf(game.name).some((word) => words.includes(word)) ? [describe(game, place)] : [],
  )
  const [first] = hits
  const pack = { id: 9_200_000, game_type: { id: 3, type: 'Bundle' }, total_rating_count: 90_000 }
  // One that has the same name, and one with hardly any fields.
  const doubles = first
    ? [
        { ...first, ...pack },
        { id: 9_200_001, name: `${first.name} Companion` },
      ]
    : []
  return [...doubles, ...hits.toReversed()].slice(0, 10)
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().match(/[a-z0-9]{3,}/g) ?? []
}

function slugOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
}

function describe(game: InventedGame, place: number) {
  const company = { name: COMPANIES[place % COMPANIES.length] ?? '' }
  const rating = 60 + ((place * 7) % 35) + 0.123
  const neighbours = [1, 2, 3].flatMap((step) => {
    const other = (place + step * 5) % GAMES.length
    const neighbour = GAMES[other]
    return neighbour ? [similar(neighbour, other)] : []
  })
  return {
    ...similar(game, place),
    url: `https://www.igdb.com/games/${slugOf(game.name)}`,
    summary: `${game.name} does not exist. `.repeat(8).trim(),
    game_type: { id: 0, type: 'Main Game' },
    genres: [{ id: 1, name: GENRES[place % GENRES.length] ?? '' }],
    themes: [{ id: 2, name: 'Fantasy' }],
    game_modes: [{ id: 3, name: 'Single player' }],
    platforms: game.platforms.map((name, at) => ({ id: at, name: PLATFORMS[name] })),
    involved_companies: [{ id: 4, company, developer: true, publisher: place % 2 === 0 }],
    rating,
    rating_count: Math.round(game.reviews / 100),
    total_rating_count: Math.round(game.reviews / 90),
    cover: { id: 5, image_id: `co${place}` },
    websites: [{ id: 6, url: `https://${slugOf(game.name)}.example/` }],
    external_games: [
      { id: 7, uid: `g-${place}`, external_game_source: 26 },
      { id: 8, uid: String(game.appid), external_game_source: 1 },
    ],
    similar_games: neighbours,
  }
}

function similar(game: InventedGame, place: number) {
  return {
    id: igdbIdOf(place),
    name: game.name,
    slug: slugOf(game.name),
    total_rating: 60 + ((place * 7) % 35) + 0.05,
    first_release_date: Date.parse(`${game.released}T00:00:00Z`) / 1000,
  }
}

/** Every third game has nobody who has told. */
function timesOf(id: number): readonly object[] {
  if (id % 3 === 2) return []
  return [{ id, hastily: 25_000 + (id % 50) * 100, normally: 40_000 + (id % 50) * 200, count: id % 90 }]
}

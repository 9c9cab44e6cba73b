import { findGame, GAMES } from './games.ts'
import { json, type StandInRequest, type StandInResponse } from './stand-in.ts'

/** SteamSpy gives ranges of its own, of which these are some. */
const RANGES = [0, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000]
/** Its developer wants no figures shown. */
const HIDDEN = GAMES[13]

/** Answers as SteamSpy does: of an app it does not know, that it has no name and hardly an owner. */
export function answerSteamSpy({ path, query }: StandInRequest): StandInResponse | undefined {
  if (path !== '/api.php' || query.get('request') !== 'appdetails') return undefined
  const appid = Number(query.get('appid'))
  const game = findGame(appid)
  const blank = { score_rank: '', userscore: 0, price: null, languages: null, genre: '' }
  if (game === undefined) {
    return json({ appid, name: null, ...blank, owners: '0 .. 20,000', ...minutes(0), ccu: 0, tags: [] })
  }
  if (game === HIDDEN) {
    return json({
      appid: 999999,
      name: 'Hidden',
      ...blank,
      owners: '0 .. 0',
      ...minutes(0),
      ccu: 0,
      tags: [],
    })
  }
  const owners = game.reviews * 40
  const above = RANGES.findIndex((end) => end > owners)
  return json({
    appid,
    name: game.name,
    ...blank,
    price: String(game.cents),
    owners: `${grouped(RANGES[above - 1] ?? 0)} .. ${grouped(RANGES[above] ?? 20_000_000)}`,
    ...minutes(0),
    ccu: Math.floor(game.reviews / 7),
    tags: { Invented: 900, Atmospheric: 400 + (game.reviews % 300), 'Great Soundtrack': 120 },
  })
}

function minutes(average: number): object {
  return {
    average_forever: average,
    average_2weeks: Math.floor(average / 10),
    median_forever: Math.floor(average / 3),
    median_2weeks: Math.floor(average / 30),
  }
}

function grouped(count: number): string {
  return new Intl.NumberFormat('en-US').format(count)
}

import { STAND_IN_CREDENTIALS } from '../sources/twitch/access-token.ts'
import { GAMES } from './games.ts'
import { json, type StandIn, type StandInRequest, type StandInResponse } from './stand-in.ts'

const TOKEN = 'stand-in-token'
const ART = 'https://static-cdn.jtvnw.net/ttv-boxart'

/** Categories that do not exist, the most watched first: some are no games, as there. */
const CATEGORIES = [
  'Chairs and Chatter',
  ...GAMES.slice(0, 3).map(({ name }) => name),
  'Kitchen Weather',
  ...GAMES.slice(3, 20).map(({ name }) => name),
  'Slow Radio',
  ...GAMES.slice(20).map(({ name }) => name),
].map((name, place) => {
  const game = GAMES.findIndex((each) => each.name === name)
  return { id: String(990_000_100 + place), name, igdbId: game < 0 ? '' : String(igdbIdOf(game)) }
})

/** Of the invented game at a place in `GAMES`, in the game database. */
export function igdbIdOf(place: number): number {
  return 9_100_000 + place
}

interface Channel {
  readonly id: string
  readonly login: string
  readonly category: { readonly id: string; readonly name: string }
  readonly viewers: number
  readonly type: string
}

/** Many small channels below few large ones, and fewer of them in every next category. */
const CHANNELS: readonly Channel[] = [
  ...CATEGORIES.flatMap((category, place) => {
    const count = Math.max(4, Math.round(180 / (place + 1)))
    return Array.from({ length: count }, (_, at): Channel => {
      const viewers = Math.floor(60_000 / (place + 1) ** 0.9 / (at + 1) ** (0.8 + (place % 5) / 10))
      const id = `4${category.id}${String(at).padStart(3, '0')}`
      return { id, login: `standin_${place}_${at}`, category, viewers, type: 'live' }
    })
  }),
  { id: '41', login: 'standin_nowhere', category: { id: '', name: '' }, viewers: 700, type: 'live' },
  {
    id: '42',
    login: 'standin_broken',
    category: CATEGORIES[0] ?? { id: '', name: '' },
    viewers: 0,
    type: '',
  },
].toSorted((one, other) => other.viewers - one.viewers)

/** `id.twitch.tv`. */
export const answerLogin: StandIn = ({ path, method, body }) => {
  if (path !== '/oauth2/token' || method !== 'POST') return undefined
  const form = new URLSearchParams(body)
  if (form.get('client_id') !== STAND_IN_CREDENTIALS.clientId)
    return json({ status: 400, message: 'invalid client' }, 400)
  if (form.get('client_secret') !== STAND_IN_CREDENTIALS.clientSecret)
    return json({ status: 403, message: 'invalid client secret' }, 403)
  return json({ access_token: TOKEN, expires_in: 5_011_271, token_type: 'bearer' })
}

/** Whether a request carries the token, as Twitch and IGDB want it. */
export function isLetIn({ headers }: StandInRequest): boolean {
  return headers.authorization === `Bearer ${TOKEN}` && headers['client-id'] === STAND_IN_CREDENTIALS.clientId
}

/** `api.twitch.tv/helix`. */
export const answerHelix: StandIn = (request) => {
  const { path, query } = request
  if (!isLetIn(request))
    return json({ error: 'Unauthorized', status: 401, message: 'Invalid OAuth token' }, 401)
  if (path === '/games/top') {
    return page(query, CATEGORIES, ({ id, name, igdbId }) => ({
      id,
      name,
      box_art_url: `${ART}/${id}-{width}x{height}.jpg`,
      igdb_id: igdbId,
    }))
  }
  if (path !== '/streams') return undefined
  const asked = query.get('game_id')
  const channels = CHANNELS.filter(({ category }) => asked === null || category.id === asked)
  return page(query, channels, ({ id, login, category, viewers, type }) => ({
    id,
    user_id: id.slice(1),
    user_login: login,
    user_name: login,
    game_id: category.id,
    game_name: category.name,
    type,
    title: 'Nothing is shown here',
    viewer_count: viewers,
    started_at: '2026-11-20T10:00:00Z',
    language: Number(id) % 3 === 0 ? 'de' : 'en',
    tags: null,
    is_mature: false,
  }))
}

/** Pages overlap by one entry, as they do when viewers come and go between two calls. */
function page<Item>(
  query: URLSearchParams,
  items: readonly Item[],
  show: (item: Item) => object,
): StandInResponse {
  const first = Math.min(100, Number(query.get('first') ?? 20))
  const from = Number(Buffer.from(query.get('after') ?? '', 'base64').toString() || 0)
  const data = items.slice(from, from + first).map(show)
  const next =
    from + first < items.length ? Buffer.from(String(from + first - 1)).toString('base64') : undefined
  return json({ data, pagination: next === undefined ? {} : { cursor: next } })
}

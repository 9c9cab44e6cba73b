import {
  Failure,
  isJsonObject,
  type Context,
  type JsonObject,
  type Part,
  type Warning,
} from 'ratecard/handler'
import { attempt, type Attempt } from '../../sources/attempt.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import type { FindByApp } from '../game/metadata.ts'
import { missing, oldest, partRow, sourcesOf } from './part.ts'

const PREVIEWED = 2

/**
 * Up to five apps at once, each from its own operation and cache, and the game database's word on the first. One app
 * must be found; of the others their entry says what is wrong.
 */
export function appDossier(findByApp: FindByApp): HandlerWithPreview<'bundle/app-dossier'> {
  return {
    check: async ({ appids }, { ask }) => {
      const apps = await Promise.all(appids.map((appid) => attempt(ask('gamestore/app', { appid }))))
      if (apps.every(({ kind }) => kind === 'failed')) throw whyNone(apps)
    },
    async run({ appids }, context) {
      const { ask, now } = context
      const asked = appids.map((appid) => attempt(ask('gamestore/app', { appid })))
      const [apps, metadata] = await Promise.all([
        Promise.all(asked),
        readMetadata(asked[0], findByApp, context),
      ])
      const found = apps.flatMap((app) => (app.kind === 'done' ? app.value : []))
      if (found.length === 0) throw whyNone(apps)
      const known = metadata?.kind === 'done' ? metadata.value : undefined
      const parts = [...found, ...(known === undefined ? [] : [known.part])]
      const moment = now()
      return {
        source: sourcesOf(parts),
        fetchedAt: oldest(parts, moment),
        warnings: [
          ...apps.flatMap((app, place) =>
            app.kind === 'failed' && app.failure.code !== 'not_found'
              ? missing(`app ${appids[place]}`, app.failure)
              : [],
          ),
          ...(metadata === undefined ? [] : metadataWarnings(metadata, appids[0])),
        ],
        body: {
          appids,
          apps: apps.map((app, place) =>
            app.kind === 'done'
              ? partRow(app.value, moment)
              : { appid: appids[place] ?? null, error: app.failure.code },
          ),
          first_title: {
            appid: appids[0] ?? null,
            matched_by: known?.by ?? null,
            ...firstTitle(known && partRow(known.part, moment)),
          },
        },
      }
    },
    preview,
  }
}

/** The game database's word on a title, and what it was found by. */
interface Metadata {
  readonly part: Part
  readonly by: 'steam_appid' | 'name'
}

/** Undefined when there is no first title to look up. */
async function readMetadata(
  first: Promise<Attempt<Part>> | undefined,
  findByApp: FindByApp,
  context: Context,
): Promise<Attempt<Metadata> | undefined> {
  const app = await first
  if (app?.kind !== 'done') return undefined
  const { appid, name } = app.value.answer.body
  if (typeof appid !== 'number' || typeof name !== 'string') return undefined
  const find = async (): Promise<Metadata> => {
    const part = await findByApp(appid, context)
    if (part !== undefined) return { part, by: 'steam_appid' }
    return { part: await context.ask('game/metadata', { name }), by: 'name' }
  }
  return attempt(find())
}

/** What was found by name may be a namesake: the app id that the database has for it, where it has one, tells. */
function metadataWarnings(metadata: Attempt<Metadata>, appid: number | undefined): Warning[] {
  if (metadata.kind === 'failed') return [missing('metadata of the first title', metadata.failure)]
  if (metadata.value.by === 'steam_appid') return []
  const { game = null } = metadata.value.part.answer.body
  const ids = isJsonObject(game) ? game['external_ids'] : undefined
  const known = isJsonObject(ids) ? ids['steam'] : undefined
  if (typeof known !== 'string' || known === String(appid)) return []
  const message = 'The game database has this name under another app id: its metadata may be of another game'
  return [{ code: 'metadata_uncertain', message }]
}

function firstTitle(row: JsonObject | undefined): JsonObject {
  if (row === undefined) return { metadata: null, similar_titles: null }
  const { similar_games: similar = null, query: _query, ...metadata } = row
  return { metadata, similar_titles: similar }
}

/** The failure of a source takes precedence: its answer would be unknown. */
function whyNone(apps: readonly Attempt<Part>[]): Failure {
  const failures = apps.flatMap((app) => (app.kind === 'failed' ? app.failure : []))
  const trouble = failures.find(({ code }) => code !== 'not_found')
  return trouble ?? new Failure('not_found', 'None of these apps was found')
}

/** Name, players, owners and reviews of each app; name and two neighbours of the first title. */
function preview({ apps = [], first_title: title = null, appids = [] }: JsonObject): JsonObject {
  const rows = Array.isArray(apps) ? apps.filter(isJsonObject) : []
  return {
    appids,
    apps: rows.map(
      ({ appid = null, name = null, live_players = null, reviews = null, owners_estimate = null }) => ({
        appid,
        name,
        live_players,
        reviews: pick(reviews, 'score_desc'),
        owners_estimate: pick(owners_estimate, 'low', 'high'),
      }),
    ),
    first_title: isJsonObject(title) ? titlePreview(title) : null,
  }
}

function titlePreview({
  appid = null,
  metadata = null,
  similar_titles: similar = null,
}: JsonObject): JsonObject {
  return {
    appid,
    metadata: isJsonObject(metadata) ? { game: pick(metadata['game'] ?? null, 'name') } : null,
    similar_titles: Array.isArray(similar)
      ? similar.slice(0, PREVIEWED).map((each) => pick(each, 'name'))
      : null,
  }
}

function pick(value: JsonObject[string], ...names: readonly string[]): JsonObject | null {
  if (!isJsonObject(value)) return null
  return Object.fromEntries(names.map((name) => [name, value[name] ?? null]))
}

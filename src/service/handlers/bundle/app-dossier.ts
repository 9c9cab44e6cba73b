import {
  Failure,
  isJsonObject,
  type Context,
  type JsonObject,
  type Part,
  type Warning,
} from '../../../engine/index.ts'
import { attempt, type Attempt } from '../attempt.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { missing, oldest, partRow, sourcesOf } from './part.ts'

const PREVIEWED = 2

/**
 * Up to five apps at once, each from its own operation and cache, and the game database's word on the first. One app
 * must be found; of the others their entry says what is wrong.
 */
export const appDossier: HandlerWithPreview<'bundle/app-dossier'> = {
  check: async ({ appids }, { ask }) => {
    const apps = await Promise.all(appids.map((appid) => attempt(ask('gamestore/app', { appid }))))
    if (apps.every(({ kind }) => kind === 'failed')) throw whyNone(apps)
  },
  async run({ appids }, { ask, now }) {
    const asked = appids.map((appid) => attempt(ask('gamestore/app', { appid })))
    const [apps, metadata] = await Promise.all([Promise.all(asked), readMetadata(asked[0], ask)])
    const found = apps.flatMap((app) => (app.kind === 'done' ? app.value : []))
    if (found.length === 0) throw whyNone(apps)
    const parts = [...found, ...(metadata?.kind === 'done' ? [metadata.value] : [])]
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
          ...firstTitle(metadata?.kind === 'done' ? partRow(metadata.value, moment) : undefined),
        },
      },
    }
  },
  preview,
}

/** Undefined when there is no first title to look up. */
async function readMetadata(
  first: Promise<Attempt<Part>> | undefined,
  ask: Context['ask'],
): Promise<Attempt<Part> | undefined> {
  const app = await first
  if (app?.kind !== 'done') return undefined
  const { name } = app.value.answer.body
  return typeof name === 'string' ? attempt(ask('game/metadata', { name })) : undefined
}

/** The database is asked by name, and names are not unique: its own app id, where it has one, tells. */
function metadataWarnings(metadata: Attempt<Part>, appid: number | undefined): Warning[] {
  if (metadata.kind === 'failed') return [missing('metadata of the first title', metadata.failure)]
  const { game = null } = metadata.value.answer.body
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

/** Trouble of a source comes first: of what it would have said nothing is known. */
function whyNone(apps: readonly Attempt<Part>[]): Failure {
  const failures = apps.flatMap((app) => (app.kind === 'failed' ? app.failure : []))
  const trouble = failures.find(({ code }) => code !== 'not_found')
  return trouble ?? new Failure('not_found', 'None of these apps was found')
}

/** Of each app its name, players, owners and what its reviews say; of the first title its name and two neighbours. */
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
  const game = isJsonObject(metadata) ? (metadata['game'] ?? null) : null
  return {
    appid,
    name: isJsonObject(game) ? (game['name'] ?? null) : null,
    similar_titles: Array.isArray(similar)
      ? similar.slice(0, PREVIEWED).map((each) => pick(each, 'name'))
      : null,
  }
}

function pick(value: JsonObject[string], ...names: readonly string[]): JsonObject | null {
  if (!isJsonObject(value)) return null
  return Object.fromEntries(names.map((name) => [name, value[name] ?? null]))
}

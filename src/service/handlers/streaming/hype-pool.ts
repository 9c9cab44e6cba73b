import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { Failure } from 'ratecard/handler'
import { attempt } from '../../sources/attempt.ts'
import { beforeDeadline, DeadlinePassed } from '../../sources/deadline.ts'
import { compileShape } from '../../sources/answer-shape.ts'
import { PAGE, type Twitch } from '../../sources/twitch.ts'
import type { Stream } from '../../sources/twitch/shapes.ts'

/** What was seen of one category. */
export type Sampled = {
  readonly id: string
  readonly name: string
  readonly boxArt?: string | null
  readonly igdbId?: string | null
  readonly viewers: number
  readonly channels: number
  /** Whether every live channel was seen. */
  readonly complete: boolean
  readonly top: { readonly login: string; readonly viewers: number; readonly language?: string | null }
}

/** The most watched categories at one time, independent of the number a buyer asks for. */
export type HypePool = {
  readonly categories: readonly Sampled[]
  /** Over all categories, those that are not listed too. */
  readonly viewers: number
  /** `streams`: the list of categories was not to be had, and they were gathered from the largest channels. */
  readonly origin: 'categories' | 'streams'
  /** Categories whose own channels could not be asked for. */
  readonly partial: number
}

/** With the list and the pages 59 questions for a pool, of the 800 a minute that Twitch answers. */
const CATEGORIES = 50
const PAGES = 8
/** For all pages, one after the other; the categories come after them. */
const WALK_MS = 5_000

const SAMPLED: JSONSchemaType<Sampled> = {
  type: 'object',
  required: ['id', 'name', 'viewers', 'channels', 'complete', 'top'],
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    boxArt: { type: 'string', nullable: true },
    igdbId: { type: 'string', nullable: true },
    viewers: { type: 'integer' },
    channels: { type: 'integer' },
    complete: { type: 'boolean' },
    top: {
      type: 'object',
      required: ['login', 'viewers'],
      properties: {
        login: { type: 'string' },
        viewers: { type: 'integer' },
        language: { type: 'string', nullable: true },
      },
    },
  },
}
export const isHypePool = compileShape<HypePool>({
  type: 'object',
  required: ['categories', 'viewers', 'origin', 'partial'],
  properties: {
    categories: { type: 'array', items: SAMPLED },
    viewers: { type: 'integer' },
    origin: { type: 'string', enum: ['categories', 'streams'] },
    partial: { type: 'integer' },
  },
})

/** Samples Twitch; throws the failure of its list of categories when nothing can be had at all. */
export async function readHypePool(twitch: Twitch, signal: AbortSignal): Promise<HypePool> {
  const [listed, largest] = await Promise.all([
    attempt(twitch.categories(signal)),
    readLargest(twitch, signal),
  ])
  const named = listed.kind === 'done' ? listed.value : namesOf(largest)
  const considered = named.slice(0, CATEGORIES)
  const asked = await Promise.all(
    considered.map(({ id }) => attempt(twitch.streams({ category: id }, signal))),
  )
  const seen = gather([
    ...largest,
    ...asked.flatMap((each) => (each.kind === 'done' ? each.value.streams : [])),
  ])
  const categories = considered.flatMap(({ id, name, ...more }, place): Sampled[] => {
    const streams = seen.get(id) ?? []
    const [top] = streams
    const own = asked[place]
    if (top === undefined) return []
    return [
      {
        id,
        name,
        boxArt: more.box_art_url ?? null,
        igdbId: more.igdb_id || null,
        viewers: sumOf(streams),
        channels: streams.length,
        complete: own?.kind === 'done' && own.value.streams.length < PAGE && own.value.next === undefined,
        top: { login: top.user_login, viewers: top.viewer_count, language: top.language || null },
      },
    ]
  })
  if (categories.length === 0) throw listed.kind === 'failed' ? listed.failure : nothing()
  return {
    categories,
    viewers: sumOf([...seen.values()].flat()),
    origin: listed.kind === 'done' ? 'categories' : 'streams',
    partial: asked.filter(({ kind }) => kind === 'failed').length,
  }
}

/** The most watched streams of all, as far as they can be had: large categories have more than their own page shows. */
async function readLargest(twitch: Twitch, signal: AbortSignal): Promise<readonly Stream[]> {
  const found: Stream[] = []
  const walk = async (limit: AbortSignal): Promise<void> => {
    let after: string | undefined
    for (let page = 0; page < PAGES; page += 1) {
      const { streams, next } = await twitch.streams({ after }, limit)
      found.push(...streams)
      after = next
      if (after === undefined) break
    }
  }
  try {
    await beforeDeadline(signal, WALK_MS, walk)
  } catch (fault) {
    // What was found by then serves.
    if (!(fault instanceof Failure || fault instanceof DeadlinePassed)) throw fault
  }
  return [...found]
}

interface Named {
  readonly id: string
  readonly name: string
  readonly box_art_url?: string | null
  readonly igdb_id?: string | null
}

/** The categories of these streams, the most watched first. */
function namesOf(streams: readonly Stream[]): readonly Named[] {
  return [...gather(streams).values()]
    .toSorted((one, other) => sumOf(other) - sumOf(one))
    .flatMap(([first]) => (first ? [{ id: first.game_id, name: first.game_name }] : []))
}

/** Streams by category, the most watched first, each once: pages overlap while viewers come and go. */
function gather(streams: readonly Stream[]): ReadonlyMap<string, readonly Stream[]> {
  const once = new Map(streams.map((stream) => [stream.id, stream]))
  const sorted = [...once.values()].toSorted((one, other) => other.viewer_count - one.viewer_count)
  const categories = new Map<string, Stream[]>()
  for (const stream of sorted) {
    if (stream.game_id === '') continue
    const others = categories.get(stream.game_id) ?? []
    others.push(stream)
    categories.set(stream.game_id, others)
  }
  return categories
}

function sumOf(streams: readonly Stream[]): number {
  return streams.reduce((sum, { viewer_count }) => sum + viewer_count, 0)
}

function nothing(): Failure {
  return new Failure('source_error', 'Twitch shows no live channels')
}

import type { ModelPrice } from '@pydantic/genai-prices'
import { closest } from './closest.ts'

/** The package keeps its package.json to itself; a test holds this against it. */
export const PRICES_VERSION = '0.1.8'

/** The day on which that version was published: prices that changed later are not in it. */
export const PRICES_PUBLISHED = '2026-09-23'

/** A model that is priced by the token. */
export interface Model {
  /** As requested. */
  readonly name: string
  /** Id in the data set. */
  readonly id: string
  readonly provider: string
  readonly contextWindow: number | null
  readonly prices: ModelPrice
  /** What the data set says about the prices; null where it says nothing. */
  readonly notes: string | null
  /** Whether another price is in force at another hour of the day (UTC). */
  readonly byHour: boolean
}

/** USD per million tokens, in the tier that a prompt of some length falls into. */
export interface Rates {
  readonly input: number
  /** `null` for models that write nothing, such as embeddings. */
  readonly output: number | null
  readonly cached: number | null
}

/**
 * The model of that name with the prices in force at `at`: `gpt-4o`, or with its seller `groq:llama-3.3-70b-versatile`,
 * `openrouter/openai/gpt-4o`. `undefined` when it is not known or not priced by the token.
 */
export async function findModel(name: string, at: Date): Promise<Model | undefined> {
  const { calcPrice } = await library()
  const [, seller, rest] = /^([^:/]+)[:/](.+)$/.exec(name) ?? []
  const found =
    calcPrice({ input_tokens: 1 }, name, { timestamp: at }) ??
    (seller === undefined || rest === undefined
      ? null
      : calcPrice({ input_tokens: 1 }, rest, { timestamp: at, providerId: seller }))
  if (found?.model_price['input_mtok'] === undefined) return undefined
  return {
    name,
    id: found.model.id,
    provider: found.provider.id,
    contextWindow: found.model.context_window ?? null,
    prices: found.model_price,
    notes: found.model.price_comments ?? null,
    byHour:
      Array.isArray(found.model.prices) &&
      found.model.prices.some(({ constraint }) => constraint?.type === 'time_of_date'),
  }
}

export function ratesFor({ prices }: Model, inputTokens: number): Rates {
  return {
    input: rate(prices['input_mtok'], inputTokens) ?? 0,
    output: rate(prices['output_mtok'], inputTokens),
    cached: rate(prices['cache_read_mtok'], inputTokens),
  }
}

/** A tier holds for the whole prompt once the prompt is longer than its start. */
function rate(price: ModelPrice[string], inputTokens: number): number | null {
  if (price === undefined) return null
  if (typeof price === 'number') return sixDecimals(price)
  const tier = price.tiers.toSorted((a, b) => b.start - a.start).find(({ start }) => inputTokens > start)
  return sixDecimals(tier?.price ?? price.base)
}

function sixDecimals(price: number): number {
  return Number(price.toFixed(6))
}

const SELLERS = [
  'openai',
  'anthropic',
  'google',
  'mistral',
  'deepseek',
  'x-ai',
  'cohere',
  'perplexity',
  'moonshotai',
  'groq',
  'together',
  'cerebras',
  'aws',
  'azure',
  'openrouter',
]

/** Up to `limit` names that `findModel` knows and that look like `name`, best first; makers before resellers. */
export async function similarModels(name: string, at: Date, limit: number): Promise<string[]> {
  const { findProvider } = await library()
  const names = SELLERS.flatMap((seller) =>
    (findProvider({ providerId: seller })?.models ?? []).map(({ id }) =>
      findProvider({ modelId: id })?.id === seller ? id : `${seller}:${id}`,
    ),
  )
  // The data set also has entries without a price by the token.
  const found = await Promise.all(closest(name, names, 4 * limit).map((each) => findModel(each, at)))
  return found.flatMap((model) => (model === undefined ? [] : [model.name])).slice(0, limit)
}

/**
 * The lines of models that are compared when none is named: a maker, what its ids look like, and where the version stands
 * in them. The newest of every variant counts, so that the comparison follows the data set.
 */
const LINES = [
  {
    maker: 'openai',
    id: /^gpt-(?<version>\d+(?:\.\d+)?)(?:-(?<variant>mini|nano|pro|astra|luna|sol|terra))?$/,
  },
  { maker: 'anthropic', id: /^claude-(?<variant>[a-z]+)-(?<version>\d+(?:-\d)?)$/ },
  { maker: 'google', id: /^gemini-(?<version>\d+(?:\.\d+)?)-(?<variant>pro|flash|flash-lite)(?:-preview)?$/ },
  { maker: 'x-ai', id: /^grok-(?<version>\d+(?:\.\d+)?)$/ },
  { maker: 'deepseek', id: /^deepseek-v(?<version>\d+(?:\.\d+)?)-(?<variant>flash|pro)$/ },
  { maker: 'mistral', id: /^mistral-(?<variant>large|medium|small)(?<version>)(?:-latest)?$/ },
] as const
/** Most models per maker: the newest ones. */
const MOST_OF_A_LINE = 4

/** Names of current models of the large makers, by what the data set knows. */
export async function currentModels(): Promise<string[]> {
  const { findProvider } = await library()
  return LINES.flatMap(({ maker, id }) => {
    const newest = new Map<string, { readonly name: string; readonly version: number }>()
    for (const model of findProvider({ providerId: maker })?.models ?? []) {
      const found = id.exec(model.id)?.groups
      if (found === undefined || model.deprecated === true) continue
      const variant = found['variant'] ?? ''
      const version = Number((found['version'] ?? '').replace('-', '.'))
      if (version >= (newest.get(variant)?.version ?? -1)) newest.set(variant, { name: model.id, version })
    }
    return [...newest.values()]
      .toSorted((one, other) => other.version - one.version)
      .slice(0, MOST_OF_A_LINE)
      .map(({ name }) => name)
  })
}

/** 20 MB of prices: loaded by the first question, not at boot. */
function library() {
  return import('@pydantic/genai-prices')
}

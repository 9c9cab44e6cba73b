import { createRequire } from 'node:module'
import { InvalidParameter, type EnvelopedAnswer, type Source, type Warning } from 'ratecard/handler'
import type { Parameters } from '../../catalog.ts'
import { costOf, costText, type Cost } from './cost.ts'
import { counterOf, type Count, type Input } from './count.ts'
import {
  currentModels,
  findModel,
  PRICES_PUBLISHED,
  PRICES_VERSION,
  ratesFor,
  similarModels,
  type Model,
} from './prices.ts'

const tokenizerPackage: { readonly version: string } = createRequire(import.meta.url)(
  'gpt-tokenizer/package.json',
)

const PRICES: Source = {
  name: 'genai-prices',
  url: 'https://github.com/pydantic/genai-prices',
  licence: 'MIT',
  version: PRICES_VERSION,
  published_at: PRICES_PUBLISHED,
}
const TOKENIZER: Source = {
  name: 'gpt-tokenizer',
  url: 'https://github.com/niieani/gpt-tokenizer',
  licence: 'MIT',
  version: tokenizerPackage.version,
}

/** The model whose tokenizer counts the input when several are compared. */
const COUNTED_AS = 'gpt-4o'

export interface PricingTask {
  readonly parameters: Parameters['util/tokencost']
  /** Milliseconds since the epoch: the prices of that day count. */
  readonly at: number
}

/** What a prompt and its answer cost at list prices, for one model or side by side, cheapest first. */
export async function price({ parameters, at }: PricingTask): Promise<EnvelopedAnswer> {
  const input = inputOf(parameters)
  const models = await modelsFor(parameters.model, new Date(at))
  const countFor = counterOf(input)
  const only = parameters.model === '' ? undefined : models[0]?.id
  const rows = await Promise.all(
    models.map(async (model) => rowOf(model, await countFor(model.id), parameters.output_tokens)),
  )
  rows.sort((a, b) => Number(a.total > b.total) - Number(a.total < b.total))
  return {
    source: input.basis === 'text' ? [PRICES, TOKENIZER] : [PRICES],
    warnings: models.some(({ byHour }) => byHour) ? [tariff(models, new Date(at))] : [],
    body: {
      input: {
        basis: input.basis,
        chars: charsOf(input),
        ...(await countFor(only ?? COUNTED_AS)),
      },
      output_tokens: parameters.output_tokens,
      currency: 'USD',
      models: rows.map(({ shown }) => shown),
      cheapest: rows.find(({ shown }) => shown.fits_context)?.shown.model ?? null,
      prices: { dataset: `genai-prices ${PRICES_VERSION}`, published_at: PRICES_PUBLISHED },
    },
  }
}

function tariff(models: readonly Model[], at: Date): Warning {
  const names = models.filter(({ byHour }) => byHour).map(({ name }) => name)
  const message = `The price depends on the hour (UTC), and is that of ${at.toISOString().slice(11, 16)}: ${names.join(', ')}`
  return { code: 'hourly_tariff', message, source: PRICES.name }
}

/** Exactly one of the three is used: tokens before text before chars. */
function inputOf({ text, chars, tokens }: Parameters['util/tokencost']): Input {
  if (tokens > 0) return { basis: 'tokens', tokens }
  if (text !== '') return { basis: 'text', text }
  if (chars > 0) return { basis: 'chars', chars }
  throw new InvalidParameter('text', 'provide text, chars or tokens')
}

/** Code points of the text; unknown when tokens were given. */
function charsOf(input: Input): number | null {
  if (input.basis === 'text') return Array.from(input.text).length
  return input.basis === 'chars' ? input.chars : null
}

async function modelsFor(name: string, at: Date): Promise<Model[]> {
  if (name === '') {
    const found = await Promise.all((await currentModels()).map((each) => findModel(each, at)))
    return found.filter((model) => model !== undefined)
  }
  const model = await findModel(name, at)
  if (model !== undefined) return [model]
  throw new InvalidParameter('model', `unknown model '${name}'`, {
    suggestions: await similarModels(name, at, 5),
  })
}

function rowOf(model: Model, count: Count, outputTokens: number) {
  const rates = ratesFor(model, count.tokens)
  const input = costOf(count.tokens, rates.input)
  const output = costOf(outputTokens, rates.output ?? 0)
  const total: Cost = input + output
  return {
    total,
    shown: {
      model: model.name,
      priced_as: model.id,
      provider: model.provider,
      input_tokens: count.tokens,
      output_tokens: outputTokens,
      is_estimate: count.is_estimate,
      input_usd_per_mtok: rates.input,
      output_usd_per_mtok: rates.output,
      cached_input_usd_per_mtok: rates.cached,
      input_cost_usd: Number(costText(input)),
      output_cost_usd: Number(costText(output)),
      total_cost_usd: Number(costText(total)),
      total_cost_usd_text: costText(total),
      price_notes: model.notes,
      hourly_tariff: model.byHour,
      context_window: model.contextWindow,
      fits_context: fits(model.contextWindow, count, outputTokens),
    },
  }
}

/** Null where the window is not known, or nearer to an estimate than its error. */
function fits(window: number | null, count: Count, outputTokens: number): boolean | null {
  if (window === null) return null
  const total = count.tokens + outputTokens
  const error = (count.tokens * count.error_margin_percent) / 100
  if (total + error <= window) return true
  return total - error > window ? false : null
}

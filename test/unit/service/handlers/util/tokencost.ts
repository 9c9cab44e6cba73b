import t from 'tap'
import {
  type Context,
  InvalidParameter,
  type Json,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { tokencost } from '../../../../../src/service/handlers/util/tokencost.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

async function ask(parameters: Partial<Parameters['util/tokencost']>, context: Partial<Context> = {}) {
  const complete = { text: '', chars: 0, tokens: 0, model: '', output_tokens: 0, ...parameters }
  return checkedAnswer('util/tokencost', await tokencost.run(complete, fixedContext(context)))
}

async function refusalOf(parameters: Partial<Parameters['util/tokencost']>): Promise<InvalidParameter> {
  try {
    await ask(parameters)
  } catch (error) {
    if (error instanceof InvalidParameter) return error
    throw error
  }
  throw new Error('expected a refusal')
}

function models(body: JsonObject): readonly JsonObject[] {
  const list: Json | undefined = body['models']
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list.map((entry: JsonObject) => entry)
}

async function priceOf(model: string, tokens: number, outputTokens: number): Promise<JsonObject> {
  const { body } = await ask({ model, tokens, output_tokens: outputTokens })
  return models(body)[0] ?? {}
}

t.test('computes known prices exactly, free of float noise', async (t) => {
  for (const [model, text] of [
    ['gpt-4o', '0.0075'],
    ['claude-sonnet-4-5', '0.0105'],
    ['gemini-2.5-pro', '0.00625'],
  ] as const) {
    const row = await priceOf(model, 1000, 500)
    t.equal(row['total_cost_usd_text'], text, model)
    t.equal(row['total_cost_usd'], Number(text), model)
  }
})

t.test('prices a long prompt by its tier, input and output alike', async (t) => {
  t.match(await priceOf('gemini-2.5-pro', 200_000, 500), {
    total_cost_usd_text: '0.255',
    output_usd_per_mtok: 10,
  })
  t.match(await priceOf('gemini-2.5-pro', 300_000, 500), {
    total_cost_usd_text: '0.7575',
    output_usd_per_mtok: 15,
  })
})

t.test('compares the usual models, the cheapest first, when none is named', async (t) => {
  const { body } = await ask({ tokens: 1000, output_tokens: 500 })
  const totals = models(body).map((row) => Number(row['total_cost_usd']))
  t.ok(totals.length >= 10)
  t.strictSame(
    totals,
    totals.toSorted((a, b) => a - b),
  )
  t.equal(body['cheapest'], models(body).find((row) => row['fits_context'])?.['model'])
  const names = models(body).map(({ model }) => (typeof model === 'string' ? model : ''))
  for (const maker of ['gpt-', 'claude-', 'gemini-', 'grok-', 'deepseek-', 'mistral-'])
    t.ok(
      names.some((name) => name.startsWith(maker)),
      maker,
    )
  // The data set of September 2026 knows newer ones.
  t.notOk(names.includes('gpt-4o'))
})

t.test('prefers tokens to text, and text to chars', async (t) => {
  const text = 'Hello world'
  t.match((await ask({ tokens: 7, text, chars: 900 })).body, {
    input: { basis: 'tokens', chars: null, tokens: 7, method: 'given', is_estimate: false },
  })
  t.match((await ask({ text, chars: 900 })).body, {
    input: { basis: 'text', chars: 11, tokens: 2, method: 'tokenizer', encoding: 'o200k_base' },
  })
  t.match((await ask({ chars: 901 })).body, {
    input: { basis: 'chars', chars: 901, tokens: 226, method: 'chars_per_token', is_estimate: true },
  })
})

t.test('refuses a request with nothing to count', async (t) => {
  await t.rejects(ask({}), new InvalidParameter('text', 'provide text, chars or tokens'))
  t.equal((await refusalOf({ output_tokens: 500 })).parameter, 'text')
})

t.test('refuses an unknown model, with similar names', async (t) => {
  for (const [model, meant] of [
    ['gpt-4oo', 'gpt-4o'],
    ['claude-sonet-4-5', 'claude-sonnet-4-5'],
  ] as const) {
    const refusal = await refusalOf({ tokens: 1, model })
    t.equal(refusal.sentence, `unknown model '${model}'`)
    t.match(refusal.ctx, { suggestions: [meant] })
  }
  for (const model of ['nope-1', '__proto__', 'constructor', '/', ':', 'a/', '\u0000', 'x'.repeat(128)]) {
    t.equal((await refusalOf({ tokens: 1, model })).parameter, 'model', JSON.stringify(model))
  }
})

t.test('refuses a model that is priced by other units', async (t) => {
  t.equal((await refusalOf({ tokens: 1, model: 'whisper-1' })).parameter, 'model')
})

t.test('counts text exactly where the encoding is public, and estimates elsewhere', async (t) => {
  const text = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
  const inputFor = async (model: string) => (await ask({ text, model })).body['input']
  t.match(await inputFor('gpt-4o'), { tokens: 201, encoding: 'o200k_base', is_estimate: false })
  t.match(await inputFor('gpt-4'), { tokens: 201, encoding: 'cl100k_base', is_estimate: false })
  t.match(await inputFor('claude-sonnet-4-5'), {
    tokens: 242,
    method: 'estimate',
    is_estimate: true,
    error_margin_percent: 15,
  })
  t.match(await inputFor('gemini-2.5-pro'), { tokens: 212, method: 'estimate' })
})

t.test('accepts the name of a model with its seller', async (t) => {
  t.match(await priceOf('openai/gpt-4o', 1000, 500), { provider: 'openai', total_cost_usd_text: '0.0075' })
  t.match(await priceOf('groq:llama-3.3-70b-versatile', 1000, 500), { provider: 'groq' })
})

t.test('says that a prompt exceeds the context window', async (t) => {
  t.match(await priceOf('gpt-4o', 128_000, 0), { context_window: 128_000, fits_context: true })
  t.match(await priceOf('gpt-4o', 128_000, 1), { fits_context: false })
  // An estimate by characters may be wrong by 30 %.
  for (const [chars, fits] of [
    [380_000, true],
    [512_000, null],
    [740_000, false],
  ] as const) {
    const { body } = await ask({ chars, model: 'gpt-4o' })
    t.equal(models(body)[0]?.['fits_context'], fits, String(chars))
  }
})

t.test('computes the largest possible numbers exactly', async (t) => {
  t.match(await priceOf('gpt-4o', 100_000_000, 100_000_000), { total_cost_usd_text: '1250' })
})

t.test('names the prices it used, and the tokenizer when it counted', async (t) => {
  t.strictSame(
    (await ask({ tokens: 1 })).source.map(({ name }) => name),
    ['genai-prices'],
  )
  t.strictSame(
    (await ask({ text: 'x' })).source.map(({ name }) => name),
    ['genai-prices', 'gpt-tokenizer'],
  )
})

t.test('names as cheapest a model that is known to take the input', async (t) => {
  // The cheapest of all does not say how much it takes.
  const { body } = await ask({ tokens: 900_000, output_tokens: 1000 })
  const [first, ...others] = models(body)
  t.equal(first?.['fits_context'], null)
  t.equal(body['cheapest'], others.find((row) => row['fits_context'] === true)?.['model'])
  const { body: longer } = await ask({ tokens: 50_000_000, output_tokens: 1000 })
  t.notOk(models(longer).some((row) => row['fits_context'] === true))
  t.equal(longer['cheapest'], null)
})

t.test('shows three models in the free sample', async (t) => {
  const preview = tokencost.preview((await ask({ chars: 4000 })).body)
  t.equal(models(preview).length, 3)
  t.match(preview, { input: { basis: 'chars', tokens: 1000 } })
})

t.test('publishes an example that equals the handler’s answer', async (t) => {
  const { body } = await ask({
    text: 'The quick brown fox jumps over the lazy dog.',
    model: 'gpt-4o',
    output_tokens: 500,
  })
  t.strictSame(body, publishedExample('util/tokencost'))
})

t.test('takes the price of the hour, and says that it depends on it', async (t) => {
  const model = 'deepseek:deepseek-chat'
  for (const [hour, price] of [
    ['10:00', 0.27],
    ['20:00', 0.135],
  ] as const) {
    const { body, warnings } = await ask(
      { tokens: 1000, model },
      { now: () => new Date(`2026-11-20T${hour}:00Z`) },
    )
    t.match(models(body), [{ hourly_tariff: true, input_usd_per_mtok: price }], hour)
    t.match(warnings, [
      {
        code: 'hourly_tariff',
        message: `The price depends on the hour (UTC), and is that of ${hour}: ${model}`,
      },
    ])
  }
  const claude = await ask({ tokens: 1000, model: 'claude-3-5-sonnet-latest' })
  t.match(
    models(claude.body),
    [{ price_notes: /cache writes cost/ }],
    'what the source says about its prices',
  )
  const steady = await ask({ tokens: 1000, model: 'gpt-4o' })
  t.match(models(steady.body), [{ hourly_tariff: false }])
  t.strictSame(steady.warnings ?? [], [], 'and nothing of other prices')
})

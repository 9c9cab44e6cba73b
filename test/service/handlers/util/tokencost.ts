import t from 'tap'
import { InvalidParameter, type Json, type JsonObject } from '../../../../src/engine/index.ts'
import type { Parameters } from '../../../../src/service/handlers/catalog.ts'
import { tokencost } from '../../../../src/service/handlers/util/tokencost.ts'
import { enveloped, fixedContext, publishedExample } from '../../../support/fixed-context.ts'

async function ask(parameters: Partial<Parameters['util/tokencost']>) {
  const complete = { text: '', chars: 0, tokens: 0, model: '', output_tokens: 0, ...parameters }
  return enveloped(await tokencost.run(complete, fixedContext()))
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

t.test('known prices come out exactly, without the noise of floats', async (t) => {
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

t.test('a long prompt is priced by its tier, input and output alike', async (t) => {
  t.match(await priceOf('gemini-2.5-pro', 200_000, 500), {
    total_cost_usd_text: '0.255',
    output_usd_per_mtok: 10,
  })
  t.match(await priceOf('gemini-2.5-pro', 300_000, 500), {
    total_cost_usd_text: '0.7575',
    output_usd_per_mtok: 15,
  })
})

t.test('without a model the usual ones are compared, the cheapest first', async (t) => {
  const { body } = await ask({ tokens: 1000, output_tokens: 500 })
  const totals = models(body).map((row) => Number(row['total_cost_usd']))
  t.ok(totals.length >= 10)
  t.strictSame(
    totals,
    totals.toSorted((a, b) => a - b),
  )
  t.equal(body['cheapest'], models(body)[0]?.['model'])
  const names = models(body).map(({ model }) => (typeof model === 'string' ? model : ''))
  for (const maker of ['gpt-', 'claude-', 'gemini-', 'grok-', 'deepseek-', 'mistral-'])
    t.ok(
      names.some((name) => name.startsWith(maker)),
      maker,
    )
  // The data set of September 2026 knows newer ones.
  t.notOk(names.includes('gpt-4o'))
})

t.test('tokens win over text, and text over chars', async (t) => {
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

t.test('nothing to count is refused', async (t) => {
  await t.rejects(ask({}), new InvalidParameter('text', 'provide text, chars or tokens'))
  t.equal((await refusalOf({ output_tokens: 500 })).parameter, 'text')
})

t.test('an unknown model is refused with names that look like it', async (t) => {
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

t.test('a model that is not priced by the token is not passed off as free', async (t) => {
  t.equal((await refusalOf({ tokens: 1, model: 'whisper-1' })).parameter, 'model')
})

t.test('text is counted exactly where the encoding is public, and estimated elsewhere', async (t) => {
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

t.test('a model can be named with its seller', async (t) => {
  t.match(await priceOf('openai/gpt-4o', 1000, 500), { provider: 'openai', total_cost_usd_text: '0.0075' })
  t.match(await priceOf('groq:llama-3.3-70b-versatile', 1000, 500), { provider: 'groq' })
})

t.test('a prompt beyond the context window is said not to fit', async (t) => {
  t.match(await priceOf('gpt-4o', 128_000, 0), { context_window: 128_000, fits_context: true })
  t.match(await priceOf('gpt-4o', 128_000, 1), { fits_context: false })
})

t.test('the largest numbers that can be asked for are still exact', async (t) => {
  t.match(await priceOf('gpt-4o', 100_000_000, 100_000_000), { total_cost_usd_text: '1250' })
})

t.test('the answer names the prices it used, and the tokenizer when it counted', async (t) => {
  t.strictSame(
    (await ask({ tokens: 1 })).source.map(({ name }) => name),
    ['genai-prices'],
  )
  t.strictSame(
    (await ask({ text: 'x' })).source.map(({ name }) => name),
    ['genai-prices', 'gpt-tokenizer'],
  )
})

t.test('names as cheapest a model whose context the input fits', async (t) => {
  const { body } = await ask({ tokens: 900_000, output_tokens: 1000 })
  const cheapest = models(body).find((row) => row['model'] === body['cheapest'])
  t.equal(cheapest?.['fits_context'] === false, false)
  const fitting = models(body).filter((row) => row['fits_context'] !== false)
  t.equal(fitting[0]?.['model'], body['cheapest'])
  t.ok(fitting.length < models(body).length, 'some do not fit')
})

t.test('the free sample shows three models', async (t) => {
  const preview = tokencost.preview((await ask({ chars: 4000 })).body)
  t.equal(models(preview).length, 3)
  t.match(preview, { input: { basis: 'chars', tokens: 1000 } })
})

t.test('the published example is what the handler answers', async (t) => {
  const { body } = await ask({
    text: 'The quick brown fox jumps over the lazy dog.',
    model: 'gpt-4o',
    output_tokens: 500,
  })
  t.strictSame(body, publishedExample('util/tokencost'))
})

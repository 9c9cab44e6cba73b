import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import t from 'tap'
import { costOf, costText } from '../../../../../../src/service/handlers/util/tokencost/cost.ts'
import {
  findModel,
  PRICES_VERSION,
  ratesFor,
  similarModels,
} from '../../../../../../src/service/handlers/util/tokencost/prices.ts'

const NOW = new Date('2026-11-20T20:00:00Z')

t.test('states the installed version of the prices', async (t) => {
  const entry = createRequire(import.meta.url).resolve('@pydantic/genai-prices')
  const installed: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../package.json', `file://${entry}`), 'utf8'),
  )
  t.equal(PRICES_VERSION, installed.version)
})

t.test('computes the cost of every model as the data set itself does', async (t) => {
  let compared = 0
  for (const provider of ['openai', 'anthropic', 'google', 'mistral', 'deepseek', 'x-ai', 'groq']) {
    for (const { id } of findProvider({ providerId: provider })?.models ?? []) {
      const model = await findModel(`${provider}:${id}`, NOW)
      for (const tokens of [1000, 199_999, 200_000, 200_001, 1_000_000]) {
        const usage = { input_tokens: tokens, output_tokens: 700 }
        const theirs = calcPrice(usage, id, { providerId: provider, timestamp: NOW })
        if (model === undefined || theirs === null || model.id !== theirs.model.id) continue
        const rates = ratesFor(model, tokens)
        const ours = costOf(tokens, rates.input) + costOf(700, rates.output ?? 0)
        if (Math.abs(Number(costText(ours)) - theirs.total_price) > 1e-9)
          t.fail(`${provider}:${id} at ${tokens}`)
        compared++
      }
    }
  }
  t.ok(compared > 500, `${compared} prices compared`)
})

t.test('leaves out the output price of an embedding model', async (t) => {
  const model = await findModel('openai:text-embedding-3-small', NOW)
  t.match(model && ratesFor(model, 1000), { output: null })
})

t.test('states a price as the decimal that the vendor published', async (t) => {
  const model = {
    name: 'm',
    id: 'm',
    provider: 'p',
    contextWindow: null,
    notes: null,
    byHour: false,
    prices: { input_mtok: 0.1 + 0.2 },
  }
  t.equal(ratesFor(model, 1).input, 0.3)
})

t.test('suggests only names that work', async (t) => {
  for (const wrong of ['gpt-4oo', 'llama-3.3-70b', 'mistral-lage', 'gemini-2.5', 'text-embedding-3-small']) {
    const names = await similarModels(wrong, NOW, 5)
    t.ok(names.length > 0 && names.length <= 5, wrong)
    for (const name of names) t.ok(await findModel(name, NOW), name)
  }
})

import { readFileSync } from 'node:fs'
import t from 'tap'
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/o200k_base'
import { parse } from 'yaml'
import { countTokens, counterOf } from '../../../../../../src/service/handlers/util/tokencost/count.ts'

interface Published {
  readonly text: string
  readonly cl100k: number
  readonly o200k?: number
}

const published: Readonly<Record<string, readonly Published[]>> = parse(
  readFileSync(new URL('../../../../../fixtures/authority/tokens.yaml', import.meta.url), 'utf8'),
)

t.test('counts as many tokens as the vendor', async (t) => {
  for (const [source, texts] of Object.entries(published)) {
    for (const { text, cl100k, o200k } of texts) {
      t.equal(await countTokens(text, 'cl100k_base'), cl100k, `${source}, cl100k: ${text}`)
      if (o200k !== undefined)
        t.equal(await countTokens(text, 'o200k_base'), o200k, `${source}, o200k: ${text}`)
    }
  }
})

t.test('encodes each model as tiktoken does', async (t) => {
  // tiktoken/model.py, MODEL_TO_ENCODING and MODEL_PREFIX_TO_ENCODING (0.12)
  const o200k =
    'o1 o3 o4-mini gpt-5 gpt-5-mini gpt-4.1 gpt-4.1-mini gpt-4.5-preview gpt-4o gpt-4o-mini chatgpt-4o-latest'
  const cl100k =
    'gpt-4 gpt-4-turbo gpt-4-32k gpt-3.5-turbo gpt-35-turbo davinci-002 babbage-002 text-embedding-ada-002 text-embedding-3-small text-embedding-3-large'
  const countFor = counterOf({ basis: 'text', text: 'お誕生日おめでとう' })
  for (const model of [...o200k.split(' '), 'openai/gpt-4o', 'ft:gpt-4o']) {
    t.match(await countFor(model), { encoding: 'o200k_base', tokens: 8, is_estimate: false }, model)
  }
  for (const model of [...cl100k.split(' '), 'azure:gpt-4', 'ft:gpt-3.5-turbo']) {
    t.match(await countFor(model), { encoding: 'cl100k_base', tokens: 9, is_estimate: false }, model)
  }
})

t.test('counts one endless word in bounded time, close to the truth', async (t) => {
  // Not cut up, these take the tokenizer from half a second to minutes.
  t.equal(await countTokens('a'.repeat(20_000), 'o200k_base'), 2500)
  t.equal(await countTokens('a'.repeat(20_000), 'cl100k_base'), 2500)
  for (const run of [' ', '\n', '!', '中', '\u0301', 'Aa', '!\u0301', '\u{1F469}\u200D']) {
    const text = run.repeat(20_000 / run.length)
    const count = await countTokens(text, 'o200k_base')
    t.ok(count > 0 && count <= 2 * text.length, `${JSON.stringify(run)}: ${count}`)
  }
})

t.test('counts ordinary text in pieces as in one', async (t) => {
  const text =
    'A sentence, its numbers (1234567) and a `word`.\n\n\tIndented — “quoted”; naïve café 東京タワー.\n'
  for (const sample of [text, text.repeat(40), `${'x'.repeat(400)} ${'y'.repeat(400)}`]) {
    t.equal(await countTokens(sample, 'o200k_base'), countWhole(sample))
  }
})

t.test('keeps characters whole at a cut', async (t) => {
  const text = '𝒳'.repeat(1000)
  t.equal(await countTokens(text, 'o200k_base'), countWhole(text))
})

t.test('reads the names of special tokens as text', async (t) => {
  t.ok((await countTokens('<|endoftext|>', 'o200k_base')) > 1)
  t.ok((await countTokens('<|endoftext|>', 'cl100k_base')) > 1)
})

t.test('counts no tokens in an empty text', async (t) => {
  t.equal(await countTokens('', 'o200k_base'), 0)
})

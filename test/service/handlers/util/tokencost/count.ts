import t from 'tap'
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/o200k_base'
import { countTokens } from '../../../../../src/service/handlers/util/tokencost/count.ts'

t.test('one endless word is counted in bounded time, close to the truth', async (t) => {
  // Not cut up, these take the tokenizer from half a second to minutes.
  t.equal(await countTokens('a'.repeat(20_000), 'o200k_base'), 2500)
  t.equal(await countTokens('a'.repeat(20_000), 'cl100k_base'), 2500)
  for (const run of [' ', '\n', '!', '中', '\u0301', 'Aa', '!\u0301', '\u{1F469}\u200D']) {
    const text = run.repeat(20_000 / run.length)
    const count = await countTokens(text, 'o200k_base')
    t.ok(count > 0 && count <= 2 * text.length, `${JSON.stringify(run)}: ${count}`)
  }
})

t.test('ordinary text is counted as if it had not been cut', async (t) => {
  const text =
    'A sentence, its numbers (1234567) and a `word`.\n\n\tIndented — “quoted”; naïve café 東京タワー.\n'
  for (const sample of [text, text.repeat(40), `${'x'.repeat(400)} ${'y'.repeat(400)}`]) {
    t.equal(await countTokens(sample, 'o200k_base'), countWhole(sample))
  }
})

t.test('a cut never splits a character', async (t) => {
  const text = '𝒳'.repeat(1000)
  t.equal(await countTokens(text, 'o200k_base'), countWhole(text))
})

t.test('the names of special tokens are read as text', async (t) => {
  t.ok((await countTokens('<|endoftext|>', 'o200k_base')) > 1)
  t.ok((await countTokens('<|endoftext|>', 'cl100k_base')) > 1)
})

t.test('no text, no tokens', async (t) => {
  t.equal(await countTokens('', 'o200k_base'), 0)
})

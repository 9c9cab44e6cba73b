export type Encoding = 'o200k_base' | 'cl100k_base'

/** What the caller gave to be counted. */
export type Input =
  | { readonly basis: 'text'; readonly text: string }
  | { readonly basis: 'chars'; readonly chars: number }
  | { readonly basis: 'tokens'; readonly tokens: number }

export type Count = {
  readonly tokens: number
  readonly method: 'tokenizer' | 'estimate' | 'chars_per_token' | 'given'
  readonly encoding: Encoding | null
  readonly is_estimate: boolean
  /** How far the true number may lie from this one, for prose and code in ASCII. */
  readonly error_margin_percent: number
}

/** Counts one input as each model would; a text is read once per encoding. Rates: see `readerOf`. */
export function counterOf(input: Input): (modelId: string) => Promise<Count> {
  const exact = new Map<Encoding, Promise<number>>()
  return async (modelId) => {
    if (input.basis === 'tokens') {
      return {
        tokens: input.tokens,
        method: 'given',
        encoding: null,
        is_estimate: false,
        error_margin_percent: 0,
      }
    }
    if (input.basis === 'chars') {
      const tokens = Math.ceil(input.chars / 4)
      return {
        tokens,
        method: 'chars_per_token',
        encoding: null,
        is_estimate: true,
        error_margin_percent: 30,
      }
    }
    const { encoding, percent } = readerOf(modelId)
    const counted = exact.get(encoding) ?? countTokens(input.text, encoding)
    exact.set(encoding, counted)
    const tokens = Math.ceil(((await counted) * percent) / 100)
    return percent === 100
      ? { tokens, method: 'tokenizer', encoding, is_estimate: false, error_margin_percent: 0 }
      : { tokens, method: 'estimate', encoding, is_estimate: true, error_margin_percent: 15 }
  }
}

/** How a model reads text: an encoding that is public, or o200k and a percentage for vendors that publish none. */
function readerOf(modelId: string): { readonly encoding: Encoding; readonly percent: number } {
  const id = modelId.toLowerCase()
  if (/(^|[:/.])(gpt-4(-|$)|gpt-3\.5|gpt-35|text-embedding-(3|ada)|(davinci|babbage)-002)/.test(id)) {
    return { encoding: 'cl100k_base', percent: 100 }
  }
  if (/(^|[:/.])(gpt-|chatgpt-|o[134](-|$))/.test(id)) return { encoding: 'o200k_base', percent: 100 }
  return { encoding: 'o200k_base', percent: id.includes('claude') ? 120 : 105 }
}

/** Tokens of the raw text, without the frame of a chat; words such as `<|endoftext|>` are read as text. */
export async function countTokens(text: string, encoding: Encoding): Promise<number> {
  const { countTokens: count } = await load(encoding)
  let total = 0
  for (const piece of pieces(text)) total += count(piece, { disallowedSpecial: new Set() })
  return total
}

/** Ranks weigh 40 to 65 MB each: only those that are asked for are loaded. */
function load(encoding: Encoding) {
  return encoding === 'o200k_base'
    ? import('gpt-tokenizer/encoding/o200k_base')
    : import('gpt-tokenizer/encoding/cl100k_base')
}

const LONGEST = 200
/** Runs that the encodings take as one word: merging one takes time quadratic in its length. */
const LONG_RUNS = /[\p{L}\p{M}]{201,}|[^\s\p{L}\p{N}]{201,}|\s{201,}/gu

/** The text with long runs cut up, at the price of about one token too many per cut. */
function* pieces(text: string): Generator<string> {
  let end = 0
  for (const { 0: run, index } of text.matchAll(LONG_RUNS)) {
    yield text.slice(end, index)
    const characters = Array.from(run)
    for (let from = 0; from < characters.length; from += LONGEST) {
      yield characters.slice(from, from + LONGEST).join('')
    }
    end = index + run.length
  }
  yield text.slice(end)
}

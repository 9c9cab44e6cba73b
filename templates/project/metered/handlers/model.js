/** Stands in for a language model. Replace `answer` by a call of yours, and keep what it returns. */

const WORDS = 'A rate card is a list of what a seller offers and what each piece costs'.split(' ')

/**
 * @param {string} prompt
 * @param {number} maxTokens
 */
export function answer(prompt, maxTokens) {
  const words = WORDS.slice(0, maxTokens)
  return { words, usage: { prompt_tokens: countTokens(prompt), completion_tokens: words.length } }
}

/**
 * A model counts its tokens itself; here each word is one.
 *
 * @param {string} text
 */
function countTokens(text) {
  return text.split(/\s+/).filter((word) => word !== '').length
}

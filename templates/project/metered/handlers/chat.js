import { answer } from './model.js'

/**
 * What is sold at /paid/chat. Parameters arrive checked and complete; a buyer is charged for the usage in the answer,
 * and nothing when this throws.
 *
 * @type {import('./catalog.d.ts').Handler<'chat'>}
 */
export const chat = async ({ prompt, max_tokens }) => {
  const { words, usage } = answer(prompt, max_tokens)
  return { source: [{ name: 'computed' }], body: { text: words.join(' '), usage } }
}

/**
 * What is sold at /paid/chat/events: a word an event, and the usage in the last one.
 *
 * @type {import('./catalog.d.ts').StreamHandler<'chat_events'>}
 */
export const chatEvents = async ({ prompt, max_tokens }) => {
  const { words, usage } = answer(prompt, max_tokens)
  return { content: { type: 'text/event-stream', stream: eventsOf(words, usage) } }
}

/**
 * @param {readonly string[]} words
 * @param {object} usage
 */
async function* eventsOf(words, usage) {
  for (const word of words) yield `data: ${JSON.stringify({ text: word })}\n\n`
  yield `data: ${JSON.stringify({ usage })}\n\n`
}

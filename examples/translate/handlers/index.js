const WORDS = { good: 'buen', day: 'día', my: 'mi', friend: 'amigo' }

async function translate({ text, style }) {
  const words = text.replace(/[a-z]+/gi, (word) => WORDS[word.toLowerCase()] ?? word)
  const body = { text: style === 'formal' ? `Estimado cliente: ${words}` : words, style }
  return { source: [{ name: 'computed' }], body }
}

export const handlers = { translate }

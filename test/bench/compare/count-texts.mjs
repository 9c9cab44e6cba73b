/** `['200', '402', '402']` → `1 × 200, 2 × 402`. */
export function countTexts(texts) {
  const counts = new Map()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([text, count]) => `${count} × ${text}`)
    .join(', ')
}

const PRICE = 0.01

/** Payments beyond one for each answer, in USD. */
export function lost(charges, answers) {
  return `${((charges - answers) * PRICE).toFixed(2)} USD`
}

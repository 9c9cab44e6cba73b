import { distance } from 'fastest-levenshtein'

/** The candidate a reader most likely meant, or undefined when none is near. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let nearest = limit + 1
  for (const candidate of candidates) {
    const steps = slips(word.toLowerCase(), candidate.toLowerCase())
    if (steps < nearest) {
      nearest = steps
      best = candidate
    }
  }
  return best
}

/** Letters in another order (`tpye`) and a word cut short (`int`) count as one slip, whatever their length. */
function slips(word: string, candidate: string): number {
  const cut = word.length >= 3 && candidate.startsWith(word)
  return cut || letters(word) === letters(candidate)
    ? Math.min(1, distance(word, candidate))
    : distance(word, candidate)
}

function letters(word: string): string {
  return Array.from(word).sort().join('')
}

/** ` — did you mean "price"?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = suggest(word, candidates)
  return found === undefined ? '' : ` — did you mean "${found}"?`
}

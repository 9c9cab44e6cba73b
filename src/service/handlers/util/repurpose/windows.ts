import type { Sentence } from './sentences.ts'

/** Consecutive sentences, from the first to the last, both included. */
export interface Window {
  readonly first: number
  readonly last: number
  readonly seconds: number
  /** 0 to 1. */
  readonly score: number
}

const SHORTEST = 0.8
const LONGEST = 1.15
const HOOK_BONUS = 0.15
const PRONOUN_PENALTY = 0.3

/** Begins with a word that refers to an earlier sentence. */
const LOOSE_OPENING =
  /^(?:it|this|that|these|those|they|he|she|but|and|so|also|er|sie|es|dies|diese|dieser|il|elle|ils|elles|cela|ello|eso|esto|esso|questo|isso|isto)\b/i

/** Begins with a word for something that an earlier sentence names: alone it says nothing. */
export const REFERS_BACK =
  /^(?:(?:but|and|so|also) )?(?:it|this|that|these|those|they|he|she|such|er|sie|es|dies|diese|dieser|il|elle|ils|elles|cela|ello|eso|esto|esso|questo|isso|isto)\b/i

/** Makes one listen: a question, a figure, an address, a contrast. */
const HOOK =
  /[?？]|\p{N}|\b(?:you|your|du|ihr|vous|tu|usted|voi|você|but|however|never|why|how|secret|mistake|instead)\b/iu

/** At most `most` windows near the target that do not overlap, the best together, in the order of the text. */
export function chooseWindows(
  sentences: readonly Sentence[],
  ranks: readonly number[],
  targetSeconds: number,
  most: number,
): Window[] {
  const windows = sentences.map((_, first) => nearestWindow(sentences, ranks, first, targetSeconds))
  const fitting = windows.filter(
    ({ seconds }) => seconds >= targetSeconds * SHORTEST && seconds <= targetSeconds * LONGEST,
  )
  if (fitting.length > 0) return bestTogether(fitting, sentences.length, most)
  // Too short a text, or sentences too long: the one nearest to the target.
  return windows
    .toSorted(
      (one, other) =>
        Math.abs(one.seconds - targetSeconds) - Math.abs(other.seconds - targetSeconds) ||
        other.score - one.score,
    )
    .slice(0, 1)
}

function nearestWindow(
  sentences: readonly Sentence[],
  ranks: readonly number[],
  first: number,
  target: number,
): Window {
  let [last, seconds, rank] = [first, sentences[first]?.seconds ?? 0, ranks[first] ?? 0]
  for (let next = first + 1; next < sentences.length; next++) {
    const longer = seconds + (sentences[next]?.seconds ?? 0)
    if (Math.abs(longer - target) > Math.abs(seconds - target)) break
    ;[last, seconds, rank] = [next, longer, rank + (ranks[next] ?? 0)]
  }
  const opening = sentences[first]?.text.slice(0, 300) ?? ''
  const mean = rank / (last - first + 1)
  const bonus = (HOOK.test(opening) ? HOOK_BONUS : 0) - (LOOSE_OPENING.test(opening) ? PRONOUN_PENALTY : 0)
  return { first, last, seconds, score: Math.min(1, Math.max(0.01, mean * (1 - HOOK_BONUS) + bonus)) }
}

/** The sets of windows with the highest sum, one more window at a time; `windows` are in the order of their beginnings. */
function bestTogether(windows: readonly Window[], length: number, most: number): Window[] {
  const beginning = new Map(windows.map((window) => [window.first, window]))
  interface Plan {
    readonly sum: number
    readonly windows: readonly Window[]
  }
  const nothing: Plan = { sum: 0, windows: [] }
  // plans[k][at]: at most k windows out of what begins at `at` or later
  let plans: Plan[] = Array.from({ length: length + 1 }, () => nothing)
  for (let count = 1; count <= most; count++) {
    const fewer = plans
    const next: Plan[] = Array.from({ length: length + 1 }, () => nothing)
    for (let at = length - 1; at >= 0; at--) {
      const skipped = next[at + 1] ?? nothing
      const window = beginning.get(at)
      const rest = window && (fewer[window.last + 1] ?? nothing)
      next[at] =
        window && rest && window.score + rest.sum > skipped.sum
          ? { sum: window.score + rest.sum, windows: [window, ...rest.windows] }
          : skipped
    }
    plans = next
  }
  return [...(plans[0]?.windows ?? [])]
}

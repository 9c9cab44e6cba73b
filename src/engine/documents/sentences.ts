import { countOf } from '../base/words.ts'

/** One line with a final punctuation mark. */
export function sentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return /[.!?:]$/.test(line) ? line : `${line}.`
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
  ['millisecond', 1],
] as const

/** A duration in words, in the largest exact unit: `10 minutes`. */
export function spellDuration(ms: number): string {
  const [name, size] = UNITS.find(([, unit]) => ms >= unit && ms % unit === 0) ?? ['millisecond', 1]
  const count = ms / size
  return countOf(count, name)
}

/** The texts that are not empty, as one paragraph. */
export function joinSentences(...sentences: readonly string[]): string {
  return sentences.filter((each) => each !== '').join(' ')
}

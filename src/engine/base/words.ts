/** A number of things: `1 route`, `2 routes`. */
export function countOf(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}

/** At most so many characters, cut at a word and marked with an ellipsis. */
export function shortenAtWord(text: string, longest: number): string {
  const points = Array.from(text)
  if (points.length <= longest) return text
  const [kept, next] = [points.slice(0, longest - 1).join(''), points[longest - 1] ?? '']
  const whole = /\s/.test(next) ? kept : kept.replace(/\s+\S*$/, '')
  return `${whole.trimEnd()}…`
}

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

/** A sentence from the `use_when` of the catalog, with or without those words. */
export function conditionOf(text: string): string {
  return /^use (when|it|this|to|for)\b/i.test(text) ? sentence(text) : `Use when: ${sentence(text)}`
}

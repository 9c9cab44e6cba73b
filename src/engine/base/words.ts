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

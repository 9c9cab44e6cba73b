/** How much of a post a text takes: characters beyond the Latin, Greek and Cyrillic ranges count twice on X. */
export function weightOf(text: string): number {
  return Array.from(text).reduce(
    (sum, character) => sum + ((character.codePointAt(0) ?? 0) > 0x10ff ? 2 : 1),
    0,
  )
}

/** The text, or its beginning up to a space, that weighs no more than `most`. */
export function shorten(text: string, most: number): string {
  if (weightOf(text) <= most) return text
  let [kept, weight] = ['', 0]
  for (const character of text) {
    weight += weightOf(character)
    if (weight > most - 1) break
    kept += character
  }
  const space = kept.lastIndexOf(' ')
  return `${(space > kept.length / 2 ? kept.slice(0, space) : kept).trimEnd()}…`
}

/** As many of the parts, in their order, as weigh no more than `most` together. */
export function joinUpTo(parts: readonly string[], between: string, most: number): string {
  let joined = ''
  for (const part of parts) {
    const longer = joined === '' ? part : joined + between + part
    if (weightOf(longer) <= most) joined = longer
  }
  return joined
}

const POST = 280
const LINKEDIN = 700

export interface Posts {
  readonly x: string
  readonly linkedin: string
  readonly thread: readonly string[]
}

/** Posts out of sentences that stand in the text, each within the limit of its place. */
export function postsOf(
  hook: string,
  summary: readonly string[],
  clips: readonly string[],
  hashtags: readonly string[],
): Posts {
  const tags = joinUpTo(hashtags.slice(0, 3), ' ', 80)
  const opening = shorten(hook, POST - weightOf(tags) - 1)
  const others = summary.filter((sentence) => sentence !== hook)
  const total = clips.length
  return {
    x: [joinUpTo([opening, ...others], ' ', POST - weightOf(tags) - 1), tags].filter(Boolean).join(' '),
    linkedin: joinUpTo(
      [shorten(hook, 300), ...others, joinUpTo(hashtags, ' ', 120)].filter(Boolean),
      '\n\n',
      LINKEDIN,
    ),
    thread: clips.map((clip, index) => `${index + 1}/${total} ${shorten(clip, POST - 6)}`),
  }
}

/** Takes a text apart into what is kept or left as a whole, each with how much of a post it takes. */
type Scale = (text: string) => readonly (readonly [piece: string, weight: number])[]

/** Characters beyond the Latin, Greek and Cyrillic ranges count twice on X, and here. */
export const AS_WRITTEN: Scale = (text) =>
  Array.from(text, (character) => [character, (character.codePointAt(0) ?? 0) > 0x10ff ? 2 : 1])

/** What X shows instead of an address, however long that is. */
const SHORT_ADDRESS = 23
const ADDRESS =
  /(\bhttps?:\/\/[a-z0-9.-]+\.[a-z]{2,}(?::\d+)?(?:[/?#][!-~]*)?|(?<![\w.@-])[a-z0-9][a-z0-9.-]*\.[a-z]{2,}(?![\w-])(?:\/[!-~]*)?)/i

/** Addresses count alike on X. One without a scheme may be none to X, so it never counts less than it is written with. */
export const ON_X: Scale = (text) =>
  text
    .split(ADDRESS)
    .flatMap((part, place) =>
      place % 2 === 0
        ? AS_WRITTEN(part)
        : [[part, Math.max(SHORT_ADDRESS, /^https?:/i.test(part) ? 0 : part.length)] as const],
    )

export function weightOf(text: string, scale: Scale): number {
  return scale(text).reduce((sum, [, weight]) => sum + weight, 0)
}

/** The text, or its beginning up to a space, that weighs no more than `most`. */
export function shorten(text: string, most: number, scale: Scale): string {
  if (weightOf(text, scale) <= most) return text
  let [kept, total] = ['', 0]
  for (const [piece, weight] of scale(text)) {
    total += weight
    if (total > most - 1) break
    kept += piece
  }
  const space = kept.lastIndexOf(' ')
  return `${(space > kept.length / 2 ? kept.slice(0, space) : kept).trimEnd()}…`
}

/** As many parts, in their order, as fit into `most` together. */
function joinUpTo(parts: readonly string[], between: string, most: number, scale: Scale): string {
  let joined = ''
  for (const part of parts) {
    const longer = joined === '' ? part : joined + between + part
    if (weightOf(longer, scale) <= most) joined = longer
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

/** Posts out of sentences that are in the text, each within the limit of its place. */
export function postsOf(
  hook: string,
  summary: readonly string[],
  clips: readonly string[],
  hashtags: readonly string[],
): Posts {
  const tags = joinUpTo(hashtags.slice(0, 3), ' ', 80, ON_X)
  const most = POST - weightOf(tags, ON_X) - 1
  const opening = shorten(hook, most, ON_X)
  const others = summary.filter((sentence) => sentence !== hook)
  const total = clips.length
  const allTags = joinUpTo(hashtags, ' ', 120, AS_WRITTEN)
  return {
    x: [joinUpTo([opening, ...others], ' ', most, ON_X), tags].filter(Boolean).join(' '),
    linkedin: joinUpTo(
      [shorten(hook, 300, AS_WRITTEN), ...others, allTags].filter(Boolean),
      '\n\n',
      LINKEDIN,
      AS_WRITTEN,
    ),
    thread: clips.map((clip, index) => `${index + 1}/${total} ${shorten(clip, POST - 6, ON_X)}`),
  }
}

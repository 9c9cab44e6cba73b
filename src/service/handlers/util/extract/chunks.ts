export interface Chunk {
  /** Positions in the text, in UTF-16 units; `text` is what is between them. */
  readonly start: number
  readonly end: number
  readonly text: string
}

export interface Cut {
  readonly chunks: readonly Chunk[]
  /** The text went on after the last chunk. */
  readonly truncated: boolean
}

/** Places where a chunk may begin, each kind in rising order; better kinds first. */
type Seams = readonly (readonly number[])[]

/**
 * Cuts a text into chunks of at most `longest` characters, at ends of paragraphs, else of sentences, else of words, else
 * between two characters. Each begins with up to `overlap` characters of the one before. Starts rise strictly, and
 * nothing but white space lies between two chunks.
 */
export function cutText(
  text: string,
  { longest, overlap, most }: { readonly longest: number; readonly overlap: number; readonly most: number },
): Cut {
  const seams = seamsOf(text)
  const chunks: Chunk[] = []
  let start = skipSpace(text, 0)
  while (start < text.length) {
    if (chunks.length === most) return { chunks, truncated: true }
    const limit = start + longest
    const end = limit >= text.length ? text.length : endBefore(text, seams, start, limit)
    const written = text.slice(start, end).trimEnd()
    chunks.push({ start, end: start + written.length, text: written })
    if (end === text.length) break
    start = skipSpace(text, overlapFrom(seams, { start, end, overlap }))
  }
  return { chunks, truncated: false }
}

const SENTENCES = new Intl.Segmenter(undefined, { granularity: 'sentence' })
const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

function seamsOf(text: string): Seams {
  const paragraphs = Array.from(text.matchAll(/\n\n+/g), ({ index, 0: { length } }) => index + length)
  const sentences = [0, ...paragraphs].flatMap((from, place) =>
    sentencesOf(text.slice(from, paragraphs[place]), from),
  )
  const words = Array.from(text.matchAll(/\s+/g), ({ index, 0: { length } }) => index + length)
  return [paragraphs, sentences, words]
}

const PIECE = 2000

/** A piece at a time: what the segmenter takes grows with the square of the text it is given. */
function sentencesOf(text: string, from: number): number[] {
  const starts: number[] = []
  for (let at = 0; at < text.length; at += PIECE) {
    for (const { index } of SENTENCES.segment(text.slice(at, at + PIECE))) {
      // The start of a piece is where we cut, unless it is that of the text.
      if (index > 0 || at === 0) starts.push(from + at + index)
    }
  }
  return starts
}

/** A paragraph's or sentence's end is worth up to half of a chunk; a word's is better than none. */
function endBefore(
  text: string,
  [paragraphs = [], sentences = [], words = []]: Seams,
  start: number,
  limit: number,
): number {
  const half = start + (limit - start) / 2
  for (const [seams, from] of [
    [paragraphs, half],
    [sentences, half],
    [words, start],
  ] as const) {
    const seam = seams[firstAbove(seams, limit) - 1]
    if (seam !== undefined && seam > from) return seam
  }
  return betweenCharacters(text, start, limit)
}

function overlapFrom(
  [, sentences = [], words = []]: Seams,
  { start, end, overlap }: { readonly start: number; readonly end: number; readonly overlap: number },
): number {
  const from = Math.max(end - overlap, start + 1)
  for (const seams of [sentences, words]) {
    const seam = seams[firstAbove(seams, from - 1)]
    if (seam !== undefined && seam < end) return seam
  }
  return end
}

/** Not inside what a reader sees as one character, unless that is longer than all of the chunk. */
function betweenCharacters(text: string, start: number, limit: number): number {
  const from = Math.max(start, limit - 64)
  let end = start
  for (const { index } of GRAPHEMES.segment(text.slice(from, limit + 64))) {
    if (from + index > limit) break
    if (from + index > start) end = from + index
  }
  return end > start ? end : limit
}

function skipSpace(text: string, from: number): number {
  const space = /\s*/y
  space.lastIndex = from
  space.exec(text)
  return space.lastIndex
}

/** Place of the first number above `limit`, by halving. */
function firstAbove(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[middle] ?? Infinity) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

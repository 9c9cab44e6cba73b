import { isDense, wordsOf, type Word } from './language.ts'

/** A sentence where it is in the text, without the space around it. */
export interface Sentence {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly words: readonly Word[]
  /** When read aloud. */
  readonly seconds: number
}

const WORDS_PER_SECOND = 2.5
const CHARACTERS_PER_SECOND = 4.5
/** A transcript may have no full stops at all: longer sentences are cut between words. */
const LONGEST = 45
const PIECE = 25

/** What ends with a full stop and ends no sentence. */
const ABBREVIATION =
  /(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|u\.s|u\.k|no|nr|fig|al|approx|inc|ltd|co|corp|dept|gen|rep|sen|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|z\.b|d\.h|bzw|usw|ca|str|abb|bspw|evtl|p\.ex|sr|sra|av|[a-z])\.$/i

export function sentencesOf(text: string, language: string): Sentence[] {
  return placesOf(text, language).flatMap((place) => cutLong(text, place, language))
}

/** Position of a sentence. */
interface Place {
  readonly start: number
  readonly end: number
}

export function placesOf(text: string, language: string): Place[] {
  const pieces: { start: number; end: number }[] = []
  for (const { segment, index } of new Intl.Segmenter(language, { granularity: 'sentence' }).segment(text)) {
    const start = index + segment.length - segment.trimStart().length
    const end = index + segment.trimEnd().length
    if (end <= start) continue
    const last = pieces.at(-1)
    // Only the end matters: a slice of the last words keeps this linear.
    const before = last === undefined ? '' : text.slice(Math.max(last.start, last.end - 12), last.end)
    if (
      last !== undefined &&
      (ABBREVIATION.test(before) || /^[\p{Ll}\p{N}]/u.test(text.slice(start, start + 2)))
    ) {
      last.end = end
    } else {
      pieces.push({ start, end })
    }
  }
  return pieces
}

function cutLong(text: string, piece: Place, language: string): Sentence[] {
  const words = wordsOf(text.slice(piece.start, piece.end), language).map((word) => ({
    word: word.word,
    start: word.start + piece.start,
    end: word.end + piece.start,
  }))
  if (words.length === 0) return []
  if (words.length <= LONGEST) return [sentenceOf(text, piece.start, piece.end, words, language)]
  const found: Sentence[] = []
  for (let at = 0; at < words.length; at += PIECE) {
    const part = words.slice(at, at + PIECE)
    const start = at === 0 ? piece.start : (part[0]?.start ?? piece.start)
    // What follows the last word, such as a comma, stays with it.
    const end = words[at + PIECE]?.start ?? piece.end
    found.push(sentenceOf(text, start, start + text.slice(start, end).trimEnd().length, part, language))
  }
  return found
}

function sentenceOf(
  text: string,
  start: number,
  end: number,
  words: readonly Word[],
  language: string,
): Sentence {
  const said = text.slice(start, end)
  const seconds = isDense(language)
    ? Array.from(said).length / CHARACTERS_PER_SECOND
    : words.length / WORDS_PER_SECOND
  return { start, end, text: said, words, seconds }
}

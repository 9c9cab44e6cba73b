import type { View } from './plain-view.ts'

/** A word of a view, with its place in the original. */
export interface Token {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** The words of a view; letters that are alone in a row, and long runs, are cut into words of the vocabulary. */
export function tokensOf({ text, origin }: View, vocabulary: ReadonlySet<string>): Token[] {
  const tokens: Token[] = []
  let alone: Token[] = []
  const flush = (): void => {
    tokens.push(...(alone.length < LEAST_SPELT ? alone : cut(alone, vocabulary)))
    alone = []
  }
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}\p{M}_]{1,64}(?:['’]\p{L}{1,5})?/gu)) {
    const token = {
      word: word.replace('’', "'"),
      start: origin[index] ?? 0,
      end: origin[index + word.length] ?? 0,
    }
    if (word.length === 1) {
      alone.push(token)
      continue
    }
    flush()
    if (word.length < LEAST_JOINED) tokens.push(token)
    else
      tokens.push(
        ...cut(
          Array.from(word, (letter, place) => letterOf(letter, index + place, origin)),
          vocabulary,
        ),
      )
  }
  flush()
  return tokens
}

/** Six letters with spaces in between are more than initials. */
const LEAST_SPELT = 6
const LEAST_JOINED = 16
const LONGEST_WORD = 16

function letterOf(word: string, place: number, origin: readonly number[]): Token {
  return { word, start: origin[place] ?? 0, end: origin[place + 1] ?? 0 }
}

/** Splits into words, longest first; omits the rest. */
function cut(letters: readonly Token[], vocabulary: ReadonlySet<string>): Token[] {
  const text = letters.map(({ word }) => word).join('')
  const words: Token[] = []
  let at = 0
  while (at < letters.length) {
    let length = Math.min(LONGEST_WORD, letters.length - at)
    while (length > 1 && !vocabulary.has(text.slice(at, at + length))) length--
    const [first, last] = [letters[at], letters[at + length - 1]]
    if (length > 1 && first && last)
      words.push({ word: text.slice(at, at + length), start: first.start, end: last.end })
    at += length
  }
  return words
}

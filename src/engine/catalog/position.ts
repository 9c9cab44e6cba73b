/** A place in the file: line and column count from 1, width in characters. */
export interface Position {
  readonly line: number
  readonly column: number
  readonly width: number
}

/** Where a word stands within a text that is spelt at `position`; the whole text when it cannot be told. */
export function wordIn(position: Position, text: string, word: string): Position {
  const index = text.indexOf(word)
  const quotes = position.width - text.length
  if (index < 0 || (quotes !== 0 && quotes !== 2)) return position
  return { ...position, column: position.column + index + quotes / 2, width: word.length }
}

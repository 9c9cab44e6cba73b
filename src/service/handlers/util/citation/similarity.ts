import type { Work } from '../../../sources/works/work.ts'

/**
 * How much the words asked for are those of a title, from 0 to 1: twice the words in common over the words of both (F1).
 * Words that are the work's authors, journal or year are left out of the count.
 *
 * @example
 * similarity('lecun deep learning nature 2015', work) // 1
 */
export function similarity(asked: string, { title, authors, container, publisher, date }: Work): number {
  const words = wordsOf(title ?? '')
  const metadata = wordsOf(
    [
      ...authors.flatMap(({ name, given, family }) => [name, given, family]),
      container,
      publisher,
      date[0]?.toString(),
    ]
      .filter(Boolean)
      .join(' '),
  )
  const rest = [...wordsOf(asked)].filter((word) => words.has(word) || !metadata.has(word))
  const common = rest.filter((word) => words.has(word)).length
  return Number(((2 * common) / Math.max(1, rest.length + words.size)).toFixed(2))
}

/** Without marks and cases; scripts without spaces give single signs. */
export function wordsOf(text: string): ReadonlySet<string> {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/['’]/gu, '')
    .toLowerCase()
  return new Set(
    plain.match(
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}]+?(?=[^\p{L}\p{N}]|$|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])/gu,
    ),
  )
}

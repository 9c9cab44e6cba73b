import { openTable } from '../../../data/open-table.ts'

interface Table {
  readonly version: string
  readonly languages: Readonly<Record<string, string>>
  readonly fillers: Readonly<Record<string, string>>
}

const stopWords = openTable(
  'stop-words.yaml',
  {
    type: 'object',
    required: ['version', 'languages', 'fillers'],
    additionalProperties: false,
    properties: {
      version: { type: 'string' },
      languages: { type: 'object', required: [], additionalProperties: { type: 'string' } },
      fillers: { type: 'object', required: [], additionalProperties: { type: 'string' } },
    },
  },
  ({ languages, fillers }: Table) => ({ little: setsOf(languages), fillers: setsOf(fillers) }),
)

function setsOf(lists: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(Object.entries(lists).map(([language, words]) => [language, new Set(words.split(' '))]))
}

/** Scripts that go without spaces, and others that one language stands for. */
const SCRIPTS = [
  ['ja', /[\p{Script=Hiragana}\p{Script=Katakana}]/gu],
  ['ko', /\p{Script=Hangul}/gu],
  ['zh', /\p{Script=Han}/gu],
  ['th', /\p{Script=Thai}/gu],
  ['ru', /\p{Script=Cyrillic}/gu],
  ['ar', /\p{Script=Arabic}/gu],
  ['he', /\p{Script=Hebrew}/gu],
  ['el', /\p{Script=Greek}/gu],
] as const

/** BCP 47, by script and by the little words; `und` where neither tells. */
export function languageOf(text: string): string {
  const letters = text.match(/\p{L}/gu)?.length ?? 0
  for (const [language, letter] of SCRIPTS) {
    if ((text.match(letter)?.length ?? 0) > letters * 0.2) return language
  }
  const words = wordsOf(text, 'und')
  const [best] = Array.from(stopWords().little, ([language, little]) => ({
    language,
    count: words.filter(({ word }) => little.has(word)).length,
  })).sort((one, other) => other.count - one.count)
  return best !== undefined && best.count * 10 >= words.length && best.count > 0 ? best.language : 'und'
}

export function stopWordsOf(language: string): ReadonlySet<string> {
  return stopWords().little.get(language) ?? new Set()
}

/** Stop words, and what is said often and names no topic either. */
export function plainWordsOf(language: string): ReadonlySet<string> {
  return new Set([...stopWordsOf(language), ...(stopWords().fillers.get(language) ?? [])])
}

/** Whether reading time goes by characters, for want of spaces between words. */
export function isDense(language: string): boolean {
  return language === 'ja' || language === 'zh' || language === 'th'
}

export interface Word {
  /** In lower case. */
  readonly word: string
  readonly start: number
  readonly end: number
}

export function wordsOf(text: string, language: string): Word[] {
  if (isDense(language)) return denseWordsOf(text, language)
  return Array.from(
    text.matchAll(/[\p{L}\p{N}\p{M}]{1,100}(?:['’-][\p{L}\p{N}\p{M}]{1,100}){0,5}/gu),
    (match) => ({
      word: match[0].toLowerCase().replaceAll('’', "'"),
      start: match.index,
      end: match.index + match[0].length,
    }),
  )
}

/** The runtime takes seconds for a long run without spaces; what is cut in two at the end of a piece does no harm. */
const DENSE_PIECE = 400

function denseWordsOf(text: string, language: string): Word[] {
  const segmenter = new Intl.Segmenter(language, { granularity: 'word' })
  const words: Word[] = []
  for (let at = 0; at < text.length;) {
    // Not between the halves of a surrogate pair.
    const long = /[\ud800-\udbff]/.test(text.charAt(at + DENSE_PIECE - 1)) ? DENSE_PIECE + 1 : DENSE_PIECE
    for (const { segment, index, isWordLike } of segmenter.segment(text.slice(at, at + long))) {
      if (isWordLike) words.push({ word: segment, start: at + index, end: at + index + segment.length })
    }
    at += long
  }
  return words
}

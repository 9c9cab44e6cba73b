import { InvalidParameter } from 'ratecard/handler'
import { isDense, languageOf, stopWordsOf, wordsOf } from '../../util/repurpose/language.ts'
import { rankSentences } from '../../util/repurpose/rank.ts'
import { sentencesOf, type Sentence } from '../../util/repurpose/sentences.ts'
import { REFERS_BACK } from '../../util/repurpose/windows.ts'

export interface ExcerptTask {
  readonly text: string
  /** The question; empty for the topic of the text itself. */
  readonly focus: string
  /** Sentences. */
  readonly most: number
}

export interface Excerpt {
  /** BCP 47; `und` when unknown. */
  readonly language: string
  /** In the order of the text, each unchanged. */
  readonly sentences: readonly Selected[]
  readonly words: number
  readonly counted: number
  /** The text has more sentences than were looked at. */
  readonly cut: boolean
}

export interface Selected {
  readonly text: string
  readonly start: number
  readonly end: number
  /** Comparable between texts that were asked for the same. */
  readonly score: number
}

/** Ranking takes time by the square of this. */
const MOST_SENTENCES = 800
const OPENING = 0.2
/** A recommendation or a conclusion is what a reader of a summary looks for. */
const CONCLUSION = 0.6
const CONCLUDES =
  /\b(?:we recommend|i recommend|recommends?|recommended|recommendation|in conclusion|to conclude|we conclude|concludes?|therefore|in summary|as a result|should (?:therefore|be)|empfehlen|empfiehlt|fazit|daher|nous recommandons|en conclusion|donc|recomendamos|en conclusión|por lo tanto|raccomandiamo|in conclusione|quindi)\b|рекоменду|следовательно|建议|結論|结论|推奨|おすすめ/iu
/** Refers to a sentence that may be left out. */
const LOOSE = 0.3
/** Shorter ones are headings and cries; they say little by themselves. */
const FEWEST_WORDS = 4

/** The sentences that say most of a text, word for word. Throws `InvalidParameter` when it has no words. */
export function selectSentences({ text, focus, most }: ExcerptTask): Excerpt {
  const language = languageOf(text)
  const all = sentencesOf(text, language)
  if (all.length === 0) throw new InvalidParameter('text', 'text must contain words')
  const sentences = all.slice(0, MOST_SENTENCES)
  const stopWords = stopWordsOf(language)
  const ranks = rankSentences(sentences, stopWords)
  const terms = termsOf(focus, language, stopWords)
  const scored = sentences.map((sentence, place) => ({
    sentence,
    score:
      (ranks[place] ?? 0) +
      closeness(shareOf(terms, sentence, language)) +
      (place === 0 ? OPENING : 0) +
      (CONCLUDES.test(sentence.text) ? CONCLUSION : 0) -
      (place > 0 && REFERS_BACK.test(sentence.text) ? LOOSE : 0) -
      (sentence.words.length < FEWEST_WORDS ? 1 : 0),
  }))
  return {
    language,
    sentences: best(scored, most).map(({ sentence: { start, end, text: said }, score }) => ({
      text: said,
      start,
      end,
      score: Math.round(score * 1000) / 1000,
    })),
    words: all.reduce((sum, { words }) => sum + words.length, 0),
    counted: all.length,
    cut: all.length > MOST_SENTENCES,
  }
}

/** Next to a rank of 1 at most: what is asked for comes before what the text is about. */
function closeness(share: number): number {
  return share === 0 ? 0 : 1 + share
}

interface Scored {
  readonly sentence: Sentence
  readonly score: number
}

/** The best sentences without repetitions, in the order of the text. */
function best(scored: readonly Scored[], most: number): Scored[] {
  const kept = new Map<string, Scored>()
  for (const each of [...scored].sort((one, other) => other.score - one.score)) {
    if (kept.size === most) break
    const words = each.sentence.words.map(({ word }) => word).join(' ')
    if (!kept.has(words)) kept.set(words, each)
  }
  return Array.from(kept.values()).sort((one, other) => one.sentence.start - other.sentence.start)
}

/** The words that are looked for; all of them where there are only little ones. */
function termsOf(focus: string, language: string, stopWords: ReadonlySet<string>): string[] {
  const said = [...new Set(wordsOf(focus, language).map(({ word }) => word))]
  const telling = said.filter((word) => !stopWords.has(word))
  return telling.length > 0 ? telling : said
}

/** How many of the words looked for a sentence has, 0 to 1; of words with spaces between them the ending may differ. */
function shareOf(terms: readonly string[], { text, words }: Sentence, language: string): number {
  if (terms.length === 0) return 0
  const found = terms.filter((term) => {
    if (isDense(language)) return text.includes(term)
    const stem = term.slice(0, Math.max(4, Math.ceil(term.length * 0.75)))
    return words.some(({ word }) => word === term || (term.length >= 4 && word.startsWith(stem)))
  })
  return found.length / terms.length
}

import { InvalidParameter, type EnvelopedAnswer, type JsonObject, type Warning } from 'ratecard/handler'
import type { Parameters } from '../../catalog.ts'
import { hashtagOf, keywordsOf, termsOf } from './keywords.ts'
import { languageOf, plainWordsOf } from './language.ts'
import { AS_WRITTEN, postsOf, shorten } from './posts.ts'
import { rankSentences } from './rank.ts'
import { sentencesOf, type Sentence } from './sentences.ts'
import { chooseWindows, REFERS_BACK, type Window } from './windows.ts'

/** Raised when the same request gets another answer than before. */
const VERSION = '1.2.0'

/** Ranking takes time by the square of this. */
const MOST_SENTENCES = 400
const HOOK_WORDS = 12
const TITLE_LENGTH = 60

/** Passages near the length of a clip, and posts of the best sentences: cut out, never worded again. */
export function cut({ text, n, target_seconds: target }: Parameters['util/repurpose']): EnvelopedAnswer {
  const language = languageOf(text)
  const stopWords = plainWordsOf(language)
  const all = sentencesOf(text, language)
  if (all.length === 0) throw new InvalidParameter('text', 'text must contain words')
  const sentences = all.slice(0, MOST_SENTENCES)
  const ranks = rankSentences(sentences, stopWords)
  const windows = chooseWindows(sentences, ranks, target, n)
  const terms = termsOf(text, sentences, stopWords)
  const keywords = keywordsOf(text, sentences, stopWords, terms, 10)
  const hashtags = keywords.flatMap(({ term }) => hashtagOf(term) ?? []).slice(0, 5)
  const summary = bestOf(sentences, ranks, 3)
  const segments = windows.map((window, index) => {
    const part = sentences.slice(window.first, window.last + 1)
    const best = keywordsOf(text, part, stopWords, terms, 5).map(({ term }) => term)
    return segmentOf(text, part, ranks.slice(window.first, window.last + 1), best, window, index)
  })
  const hooks = segments.map(({ hook }) => hook)
  return {
    source: [{ name: 'computed', version: VERSION }],
    warnings: warningsOf(all.length, segments.length, n),
    body: {
      language,
      input: {
        words: all.reduce((sum, { words }) => sum + words.length, 0),
        sentences: all.length,
        read_seconds: Math.round(all.reduce((sum, { seconds }) => sum + seconds, 0)),
      },
      target_seconds: target,
      n,
      segments: segments.map(({ shown }) => shown),
      summary: summary.join(' '),
      keywords: keywords.map(({ term, score }) => ({ term, score })),
      posts: { ...postsOf(hooks[0] ?? '', summary, hooks, hashtags) },
      method: 'extractive (TextRank), no generated wording',
    },
  }
}

function warningsOf(sentences: number, segments: number, n: number): Warning[] {
  return [
    ...(sentences > MOST_SENTENCES
      ? [{ code: 'text_cut', message: `Only the first ${MOST_SENTENCES} sentences were looked at` }]
      : []),
    ...(segments < n
      ? [
          {
            code: 'fewer_segments',
            message: `The text has room for ${segments} of ${n} clips of this length`,
          },
        ]
      : []),
  ]
}

/** The best sentences in the order of the text. */
function bestOf(sentences: readonly Sentence[], ranks: readonly number[], most: number): string[] {
  return sentences
    .map(({ text }, place) => ({ text, place, rank: ranks[place] ?? 0 }))
    .sort((one, other) => other.rank - one.rank || one.place - other.place)
    .slice(0, most)
    .sort((one, other) => one.place - other.place)
    .map(({ text }) => text)
}

function segmentOf(
  text: string,
  part: readonly Sentence[],
  ranks: readonly number[],
  keywords: readonly string[],
  window: Window,
  index: number,
): { readonly hook: string; readonly shown: JsonObject } {
  const [start, end] = [part[0]?.start ?? 0, part.at(-1)?.end ?? 0]
  // A hook stands alone: it must not refer to a sentence before it.
  const isHook = ({ text: said, words }: Sentence): boolean =>
    words.length <= HOOK_WORDS && !REFERS_BACK.test(said)
  const short = part.filter(isHook)
  const shortRanks = ranks.filter((_, place) => part.slice(place, place + 1).some(isHook))
  const hook = bestOf(short, shortRanks, 1)[0] ?? firstWords(text, part[0])
  const title = shorten(hook.replace(/[.。]$/, ''), TITLE_LENGTH, AS_WRITTEN)
  return {
    hook,
    shown: {
      index,
      start,
      end,
      text: text.slice(start, end),
      word_count: part.reduce((sum, { words }) => sum + words.length, 0),
      estimated_seconds: Math.round(window.seconds),
      hook,
      title,
      keywords: [...keywords],
      hashtags: keywords.flatMap((term) => hashtagOf(term) ?? []),
      score: Math.round(window.score * 100) / 100,
    },
  }
}

function firstWords(text: string, sentence: Sentence | undefined): string {
  const last = sentence?.words.slice(0, HOOK_WORDS).at(-1)
  return sentence === undefined || last === undefined ? '' : `${text.slice(sentence.start, last.end)}…`
}

import type { Context, EnvelopedAnswer } from 'ratecard/handler'
import type { LanguageModel } from '../../sources/model.ts'
import { compileShape } from '../../sources/answer-shape.ts'
import type { Handler } from '../catalog.ts'
import { isDense } from '../util/repurpose/language.ts'
import { takeExcerpt } from './excerpt.ts'
import { withoutLinks } from './links.ts'
import { promptOf } from './prompt.ts'

/** Raised when the same text gets another excerpt than before. */
const VERSION = '1.0.0'
/** Most sentences of an excerpt; a shorter text yields a fifth of its sentences. */
const MOST_SENTENCES = 7
const SHARE = 5
const LONGEST_SUMMARY = 8000

interface Summary {
  readonly summary: string
}
const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['summary'],
  properties: { summary: { type: 'string', pattern: '\\S' } },
} as const
const isSummary = compileShape<Summary>(SCHEMA)

/** The gist of a text: by a model where there is one, otherwise the sentences that say most of it, word for word. */
export function summarize(model: LanguageModel | undefined): Handler<'research/summarize'> {
  return async ({ text, focus }, context) => {
    const excerpt = await takeExcerpt({ text, focus, most: MOST_SENTENCES }, context.signal)
    const facts = {
      language: excerpt.language,
      focus: focus === '' ? null : focus,
      input: { chars: Array.from(text).length, words: excerpt.words, sentences: excerpt.counted },
    }
    if (model !== undefined) return written(model, text, focus, facts, context)
    const most = Math.min(MOST_SENTENCES, Math.ceil(excerpt.counted / SHARE))
    const best = [...excerpt.sentences].sort((one, other) => other.score - one.score).slice(0, most)
    const sentences = best.sort((one, other) => one.start - other.start)
    return {
      source: [{ name: 'computed', version: VERSION }],
      warnings: excerpt.cut
        ? [{ code: 'text_cut', message: 'Only the first 800 sentences were looked at' }]
        : [],
      body: {
        mode: 'extractive',
        ...facts,
        summary: sentences.map(({ text: said }) => said).join(isDense(excerpt.language) ? '' : ' '),
        sentences: sentences.map(({ text: said, start, end }) => ({ text: said, start, end })),
      },
    }
  }
}

async function written(
  model: LanguageModel,
  text: string,
  focus: string,
  facts: EnvelopedAnswer['body'],
  { random, signal }: Context,
): Promise<EnvelopedAnswer> {
  const task = [
    'You summarise a text in its own language, in at most 150 words, and add nothing that it does not say.',
    ...(focus === '' ? [] : ['What the summary is to be about stands in the block "focus".']),
  ].join('\n')
  const material = [{ label: 'text', text }, ...(focus === '' ? [] : [{ label: 'focus', text: focus }])]
  const messages = promptOf(task, SCHEMA, material, random)
  const answer = await model.fill({ messages, name: 'summary', schema: SCHEMA }, isSummary, signal)
  const summary = withoutLinks(answer.summary.slice(0, LONGEST_SUMMARY), (address) => text.includes(address))
  return { source: [model.source], body: { mode: 'llm', ...facts, summary: summary.trim(), sentences: null } }
}

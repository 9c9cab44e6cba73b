import type { JSONSchemaType } from 'ajv/dist/2020.js'
import type { Context } from 'ratecard/handler'
import { unusable, type LanguageModel } from '../../../sources/model.ts'
import { compileShape } from '../../../sources/answer-shape.ts'
import { takeExcerpt } from '../excerpt.ts'
import { promptOf } from '../prompt.ts'
import { citedOnly, joined, tidy, type Brief, type BriefClaim } from './brief.ts'
import type { Page } from './pages.ts'

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['brief', 'claims'],
  properties: {
    brief: { type: 'string' },
    claims: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['text', 'source'],
        properties: { text: { type: 'string' }, source: { type: 'integer' } },
      },
    },
  },
} as const satisfies JSONSchemaType<Brief>
const isBrief = compileShape<Brief>(SCHEMA)

const TASK = [
  'You answer a question from web pages that were read for it, and from nothing else.',
  'Write a brief of at most 200 words in the language of the question. End every sentence with the numbers of the pages it',
  'rests on: "Sales rose by a tenth [1][3]." Then list its claims, each with the number of one page. Leave out what no page',
  'says, and say so when the pages do not answer the question.',
].join('\n')

/** Characters from the start of each page: as many pages fit into the context of small models. */
const LONGEST_PAGE = 6000

/** A brief that a model writes from the pages. Throws `source_error` when nothing of it leads back to one. */
export async function writeBrief(
  model: LanguageModel,
  query: string,
  pages: readonly Page[],
  { signal, random }: Context,
): Promise<Brief> {
  const material = [
    { label: 'question', text: query },
    ...pages.map(({ title, text }, index) => ({
      label: `page ${index + 1}`,
      text: `${title}\n\n${text.slice(0, LONGEST_PAGE)}`,
    })),
  ]
  const messages = promptOf(TASK, SCHEMA, material, random)
  const written = await model.fill({ messages, name: 'brief', schema: SCHEMA }, isBrief, signal)
  const cited = citedOnly(written, pages)
  if (cited.brief === '') throw unusable('uncited', 'wrote nothing that leads back to a page')
  return cited
}

const MOST_OF_ONE_PAGE = 4
const MOST_IN_ALL = 8
/** What the excerpt takes in a reasonable time. */
const LONGEST_TEXT = 24_000

/** A heading or an item of a menu has none. */
const END_OF_SENTENCE = /[.!?…。！？]["”’»)]?$/

/** Without a model: the sentences of the pages that come nearest to the question, the nearest first. */
export async function quotePages(query: string, pages: readonly Page[], { signal }: Context): Promise<Brief> {
  const all: (BriefClaim & { readonly score: number })[] = []
  // One after the other: starting a second thread takes longer than the others need for their work.
  for (const [index, { text }] of pages.entries()) {
    // A page has citations of its own, which would be confused with ours.
    const own = text.slice(0, LONGEST_TEXT).replaceAll(/\s?\[\d{1,9}\]/g, '')
    const { sentences } = await takeExcerpt({ text: own, focus: query, most: MOST_OF_ONE_PAGE }, signal)
    for (const { text: said, score } of sentences)
      all.push({ text: tidy(said, pages), source: index + 1, score })
  }
  const whole = all.filter(({ text }) => END_OF_SENTENCE.test(text))
  const claims: BriefClaim[] = (whole.length > 0 ? whole : all)
    .sort((one, other) => other.score - one.score || one.source - other.source)
    .slice(0, MOST_IN_ALL)
    .map(({ text, source }) => ({ text: text.replaceAll(/\s+/g, ' '), source }))
  return { brief: joined(claims), claims }
}

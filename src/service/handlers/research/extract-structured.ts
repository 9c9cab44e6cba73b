import { Failure, InvalidParameter, type JsonObject } from 'ratecard/handler'
import type { LanguageModel, Message } from '../../sources/model.ts'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { ConfigurableHandler } from '../catalog.ts'
import type { Case, Judgement } from './extract-structured/judgement.ts'
import { refuseSchema } from './extract-structured/limits.ts'
import { promptOf } from './prompt.ts'

const MILLISECONDS = 1000
/** Schemas are programs: what they do, they do in a thread. */
const pool = new ThreadPool<Case, Judgement>(entryBeside(import.meta.url, './extract-structured/worker'), {
  threads: 2,
  milliseconds: MILLISECONDS,
  megabytes: 128,
})

const TASK =
  'You take from a text what a JSON Schema asks for. What the text does not tell is left out where the schema allows it.'
/** Shown to the model, and to the buyer when it has not helped. */
const MOST_ERRORS = 10

/** Extracts data for a schema from a text: a model writes it, the schema validates it, and one retry corrects it. */
export function extractStructured(
  model: LanguageModel | undefined,
): ConfigurableHandler<'research/extract-structured'> {
  return {
    configured: model !== undefined,
    check: async ({ schema }, { signal }) => {
      await examine(schema, signal)
    },
    run: async ({ text, schema }, { signal, random }) => {
      if (model === undefined) throw new Failure('not_configured', 'no language model is set up here')
      const sound = await examine(schema, signal)
      const asked = promptOf(TASK, schema, [{ label: 'text', text }], random)
      const write = (messages: readonly Message[]): Promise<string> =>
        model.write({ messages, name: 'extract', schema }, signal)
      const first = await write(asked)
      const judged = await judge({ schema: sound, written: first }, signal)
      if (judged.kind === 'fits') return answer(model, judged, 1)
      const again = await write([...asked, { role: 'assistant', content: first }, complaint(judged)])
      const second = await judge({ schema: sound, written: again }, signal)
      if (second.kind === 'fits') return answer(model, second, 2)
      throw new Failure(
        'schema_mismatch',
        'The text could not be turned into JSON that satisfies the schema',
        {
          extra: { errors: errorsOf(second) },
        },
      )
    },
  }
}

/** The schema as text; throws `InvalidParameter` before anybody is asked when it cannot be worked with. */
async function examine(schema: JsonObject, signal: AbortSignal): Promise<string> {
  const sentence = refuseSchema(schema)
  if (sentence !== undefined) throw new InvalidParameter('schema', sentence)
  const text = JSON.stringify(schema)
  await judge({ schema: text, written: undefined }, signal)
  return text
}

async function judge(task: Case, signal: AbortSignal): Promise<Judgement> {
  const judgement = await pool.perform(task, signal)
  if (judgement !== LIMIT_EXCEEDED) return judgement
  throw new InvalidParameter('schema', `schema is too complex to be checked within ${MILLISECONDS} ms`)
}

function answer(
  { source }: LanguageModel,
  { value }: Extract<Judgement, { kind: 'fits' }>,
  attempts: number,
) {
  return { source: [source], body: { data: value, valid: true, attempts } }
}

function complaint(judgement: Judgement): Message {
  const errors = errorsOf(judgement)
  const said =
    errors.length === 0
      ? 'That is not one whole JSON object.'
      : `That does not satisfy the schema:\n${JSON.stringify(errors)}`
  return { role: 'user', content: `${said}\nWrite the whole object once more, corrected, and nothing else.` }
}

function errorsOf(judgement: Judgement): JsonObject[] {
  if (judgement.kind !== 'differs') return []
  return judgement.errors.slice(0, MOST_ERRORS).map(({ path = '', keyword = '', message = '' }) => ({
    path,
    keyword,
    message,
  }))
}

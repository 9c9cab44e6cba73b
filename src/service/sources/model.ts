import { Failure, type JsonObject, type Source } from 'ratecard/handler'
import { JsonSource, Refused } from './json-source.ts'
import { isStrict } from './model/strict.ts'
import { compileShape, type Shape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

export interface ModelOptions {
  /** Name of the model, as source in answers. */
  readonly source: Source
  /** URL of an OpenAI-compatible endpoint: `https://api.openai.com/v1`. */
  readonly baseUrl: string
  /** A model on the operator's own machine wants none. */
  readonly apiKey: string | undefined
  readonly model: string
  /** For a question. */
  readonly timeoutMs: number
}

/** The longest time of an operation that settles after the work. */
export const LIVE_MODEL: Pick<ModelOptions, 'timeoutMs'> = { timeoutMs: 15_000 }

export interface Message {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** The prompt, and the schema of the answer, which the caller validates. */
export interface ModelRequest {
  readonly messages: readonly Message[]
  /** Letters, digits and `_`. */
  readonly name: string
  readonly schema: JsonObject
}

/** Limit of tokens, including reasoning. */
const MOST_TOKENS = 8192
const NAME = 'The language model'

interface Completion {
  readonly choices: readonly {
    readonly message: { readonly content?: string | null; readonly refusal?: string | null }
    readonly finish_reason?: string | null
  }[]
}

const COMPLETION = compileShape<Completion>({
  type: 'object',
  required: ['choices'],
  properties: {
    choices: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['message'],
        properties: {
          message: {
            type: 'object',
            properties: {
              content: { type: 'string', nullable: true },
              refusal: { type: 'string', nullable: true },
            },
          },
          finish_reason: { type: 'string', nullable: true },
        },
      },
    },
  },
})

/**
 * Any model behind the chat completions of OpenAI. It gets no tools and no secrets. Throws `Failure` as `JsonSource`
 * does, and `source_error` with the member `reason` when it declines, or does not come to an end.
 *
 * @example
 * const text = await model.write({ messages, name: 'summary', schema }, context.signal)
 */
export class LanguageModel {
  readonly source: Source
  readonly #model: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #api: JsonSource

  constructor(options: ModelOptions, runtime: Runtime, records: MetricsBySource) {
    const { source, baseUrl, apiKey, model, timeoutMs } = options
    this.source = source
    this.#model = model
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    const rate = { perSecond: 10, burst: 30 }
    this.#api = new JsonSource(
      { name: NAME, baseUrl, rate, timeoutMs },
      runtime,
      records.of('language-model'),
    )
  }

  /** The text of the answer, which should be JSON. */
  async write(assignment: ModelRequest, signal: AbortSignal): Promise<string> {
    try {
      return textOf(await this.#complete(assignment, formOf(assignment), signal))
    } catch (cause) {
      // Not every endpoint knows how to hold a model to a schema, and none knows every schema: the words have to do.
      if (!(cause instanceof Refused) || cause.answered !== 400) throw cause
      return textOf(await this.#complete(assignment, {}, signal))
    }
  }

  /** The object that was asked for. Throws `source_error` when what was written is another one, or none. */
  async fill<Form>(assignment: ModelRequest, isForm: Shape<Form>, signal: AbortSignal): Promise<Form> {
    const written = readJson(await this.write(assignment, signal))
    if (isForm(written)) return written
    throw unusable('form', 'answered in another form than it was asked for')
  }

  #complete({ messages }: ModelRequest, form: JsonObject, signal: AbortSignal): Promise<Completion> {
    const asked = {
      model: this.#model,
      messages,
      max_completion_tokens: MOST_TOKENS,
      ...form,
    }
    const question = {
      path: '/chat/completions',
      query: {},
      headers: this.#headers,
      post: { type: 'application/json', text: JSON.stringify(asked) },
      shape: COMPLETION,
    }
    return this.#api.get(question, signal)
  }
}

function formOf({ name, schema }: ModelRequest): JsonObject {
  const strict = isStrict(schema) ? { strict: true } : {}
  return { response_format: { type: 'json_schema', json_schema: { name, schema, ...strict } } }
}

function textOf({ choices }: Completion): string {
  const { message, finish_reason: end } = choices[0] ?? { message: {} }
  if (typeof message.refusal === 'string' || end === 'content_filter') throw unusable('refused', 'declined')
  if (end === 'length') throw unusable('cut', 'did not come to an end')
  const text = unfenced(message.content ?? '')
  if (text === '') throw unusable('empty', 'wrote nothing')
  return text
}

/** Models that are held to no schema like to put their JSON into a fence of Markdown. */
function unfenced(content: string): string {
  const text = content.trim()
  if (!text.startsWith('```') || !text.endsWith('```') || text.length < 6) return text
  return text
    .slice(3, -3)
    .replace(/^json\b/i, '')
    .trim()
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What the model wrote is of no use. */
export function unusable(reason: 'refused' | 'cut' | 'empty' | 'form' | 'uncited', verb: string): Failure {
  return new Failure('source_error', `${NAME} ${verb}`, { extra: { reason } })
}

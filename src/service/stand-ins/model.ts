import { isJsonObject, type Json, type JsonObject } from 'ratecard/handler'
import { json, type StandInRequest, type StandInResponse } from './stand-in.ts'

/** Answers as OpenAI does: with the first words and numbers of the text, wherever the schema wants some. */
export function answerModel({ path, method, body }: StandInRequest): StandInResponse | undefined {
  if (method !== 'POST') return undefined
  if (path === '/embeddings') return json(embeddingsOf(JSON.parse(body)))
  if (path !== '/chat/completions') return undefined
  const { model, schema, text } = readQuestion(JSON.parse(body))
  const content = JSON.stringify(fill(schema, text))
  return json({
    id: 'chatcmpl-sandbox',
    object: 'chat.completion',
    model,
    choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: 'stop' }],
  })
}

/** The same for every text: nobody is to think that meanings were compared. */
function embeddingsOf(asked: Json): JsonObject {
  const { model = null, input } = objectOf(asked)
  const texts = Array.isArray(input) ? input : []
  const data = texts.map((_, index) => ({ object: 'embedding', index, embedding: [0.6, 0, 0.8] }))
  return { object: 'list', model, data }
}

interface Question {
  readonly model: Json
  readonly schema: JsonObject
  readonly text: string
}

function readQuestion(asked: Json): Question {
  const { model = null, response_format: form, messages } = objectOf(asked)
  const { schema } = objectOf(objectOf(form)['json_schema'])
  const user = Array.isArray(messages)
    ? messages.map((each) => objectOf(each)).find(({ role }) => role === 'user')
    : undefined
  const said = user?.['content']
  // Between the lines that begin with a boundary.
  const text = typeof said === 'string' ? said.split('\n').slice(1, -1).join(' ') : ''
  return { model, schema: objectOf(schema), text }
}

/** The smallest value that may satisfy a schema; where it does not, the service says so, as of any model. */
function fill(schema: JsonObject, text: string): Json {
  const { type, enum: values, const: only, properties, items } = schema
  if (only !== undefined) return only
  if (Array.isArray(values)) return values.find((value) => text.includes(String(value))) ?? values[0] ?? null
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(objectOf(properties)).map(([name, each]) => [name, fill(objectOf(each), text)]),
      )
    case 'array':
      return [fill(objectOf(items), text)]
    case 'integer':
      return Number(/\b\d{1,15}\b(?![.,]\d)/.exec(text)?.[0] ?? 0)
    case 'number':
      return Number(/\b\d{1,12}\.\d{1,6}\b/.exec(text)?.[0] ?? /\d{1,15}/.exec(text)?.[0] ?? 0)
    case 'boolean':
      return true
    case 'string':
      return /^\P{Ll}\p{L}*(?: [\p{Lu}\p{N}][\p{L}\p{N}]*){0,3}/u.exec(text)?.[0] ?? text.slice(0, 40)
    default:
      return null
  }
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

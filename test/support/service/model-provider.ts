import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { MetricsBySource } from '../../../src/service/sources/source-metrics.ts'
import { LanguageModel } from '../../../src/service/sources/model.ts'
import { Searxng } from '../../../src/service/sources/searxng.ts'
import { WORLD } from './sources.ts'
import { listening } from '../http.ts'

/** How a provider of models behaves; `says` is what it writes, each time the next one, the last again and again. */
export type ModelBehavior =
  | { readonly kind: 'says'; readonly texts: readonly string[] }
  | { readonly kind: 'raw'; readonly body: string }
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: 'ends'; readonly reason: string }
  | { readonly kind: 'refuses' }
  | { readonly kind: 'hangs' }
  /** As endpoints do that know no schemas: 400 to the first kind of question, the text to the second. */
  | { readonly kind: 'knows_no_schema'; readonly text: string }

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: {
    readonly messages: readonly { readonly role: string; readonly content: string }[]
    readonly response_format?: { readonly json_schema: { readonly strict?: boolean } }
  }
}

interface Provider {
  readonly url: string
  /** Every question so far. */
  readonly asked: Asked[]
  manner: ModelBehavior
  readonly model: LanguageModel
}

interface Teardown {
  teardown(work: () => Promise<void>): void
}

export const says = (...texts: readonly string[]): ModelBehavior => ({ kind: 'says', texts })

/** A provider compatible with OpenAI's API, over real HTTP, whose behaviour the test sets. */
export async function openProvider(t: Teardown, manner: ModelBehavior, timeoutMs = 5000): Promise<Provider> {
  const asked: Asked[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { authorization } = request.headers
    const body = JSON.parse(await text(request)) as Asked['body']
    asked.push({ path: request.url ?? '', authorization, body })
    respond(provider.manner, asked, response)
  }
  const { url, close } = await listening(
    createServer((request, response) => void answer(request, response).catch(() => response.destroy())),
  )
  t.teardown(close)
  const source = { name: 'A language model' }
  const options = { source, baseUrl: `${url}/v1`, apiKey: 'sk-of-the-operator', model: 'small', timeoutMs }
  const model = new LanguageModel(options, WORLD, new MetricsBySource(WORLD.now))
  const provider: Provider = { url, asked, manner, model }
  return provider
}

function respond(manner: ModelBehavior, asked: readonly Asked[], response: ServerResponse): void {
  const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
    const written = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(written)
  }
  const complete = (content: string | null, end = 'stop', refusal: string | null = null): void =>
    send(200, { choices: [{ message: { role: 'assistant', content, refusal }, finish_reason: end }] })
  switch (manner.kind) {
    case 'says':
      return complete(manner.texts[Math.min(asked.length, manner.texts.length) - 1] ?? '')
    case 'raw':
      return send(200, manner.body)
    case 'status':
      return send(
        manner.status,
        { error: { message: 'sk-of-the-operator is over its quota' } },
        manner.headers,
      )
    case 'ends':
      return complete('{"half": ', manner.reason)
    case 'refuses':
      return complete(null, 'stop', 'I would rather not.')
    case 'hangs':
      return undefined
    case 'knows_no_schema':
      return asked.at(-1)?.body.response_format === undefined
        ? complete(manner.text)
        : send(400, { error: { message: 'Unknown parameter: response_format' } })
  }
}

/** A search engine with the results that the test sets. */
export async function openEngine(t: Teardown, urls: readonly string[]): Promise<Searxng> {
  const results = urls.map((url) => ({ url, title: `A page at ${url}` }))
  const { url, close } = await listening(
    createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results })),
    ),
  )
  t.teardown(close)
  const options = { source: { name: 'A search engine' }, baseUrl: url, timeoutMs: 5000 }
  return new Searxng(options, WORLD, new MetricsBySource(WORLD.now))
}

/** What writes in the sandbox. */
export async function standInModel(t: Teardown): Promise<LanguageModel> {
  const { url, stop } = await startStandIns()
  t.teardown(stop)
  const source = { name: 'Sandbox stand-in for a language model' }
  const options = { source, baseUrl: `${url}/model`, apiKey: undefined, model: 'stand-in', timeoutMs: 5000 }
  return new LanguageModel(options, WORLD, new MetricsBySource(WORLD.now))
}

/** The search engine of the sandbox; `fault` makes it fail. */
export async function standInEngine(t: Teardown, fault?: Fault): Promise<Searxng> {
  const { url, stop } = await startStandIns({
    faults: fault === undefined ? {} : { '/searxng/search': fault },
  })
  t.teardown(stop)
  const source = { name: 'Sandbox stand-in for a search engine' }
  return new Searxng(
    { source, baseUrl: `${url}/searxng`, timeoutMs: 5000 },
    WORLD,
    new MetricsBySource(WORLD.now),
  )
}

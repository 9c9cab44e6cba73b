import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import t, { type Test } from 'tap'
import { chooseEmbedder } from '../../../../src/service/memory/choose-embedder.ts'
import { wayOf, type Embedder } from '../../../../src/service/memory/embedder.ts'
import { hashEmbedder } from '../../../../src/service/memory/hash-embedder.ts'
import { relatedTerms } from '../../../../src/service/memory/related.ts'
import { isEnglish } from '../../../../src/service/memory/sentence-embedder.ts'
import { termsOf } from '../../../../src/service/memory/terms.ts'
import { findSentenceModel } from '../../../../src/service/sentences/sentence-model.ts'
import { MetricsBySource } from '../../../../src/service/sources/source-metrics.ts'
import { measure, readMemories } from '../../../bench/retrieval/measure.ts'
import { listening } from '../../../support/http.ts'

const patient = new AbortController().signal
const now = (): Date => new Date()
const runtime = { fetch, now, sleep: async () => undefined, random: () => 0 }

/** Beyond that, machines may differ. */
function rounded(vector: Float32Array): string {
  return Array.from(vector, (value) => value.toFixed(5)).join(' ')
}

t.test('keeps the vectors of hash-v1 stable', async (t) => {
  const texts = readMemories().flatMap(({ text, lexical, morphology, paraphrase }) => [
    text,
    lexical,
    morphology,
    paraphrase,
  ])
  const vectors = await hashEmbedder.embed([...texts, '', '😀', 'Ελληνικά', 'हिन्दी', 'ภาษาไทย'], patient)
  const digest = createHash('sha256').update(vectors.map(rounded).join('\n')).digest('hex')
  t.equal(digest, '77adc130ff5c05d647a46211c772c820c0d1b8fa3740af67c041ff58d1a99daa')
  t.ok(vectors.every((vector) => vector.length === 384 && Math.abs(Math.hypot(...vector) - 1) < 1e-6))
})

t.test('finds memories by their words and other forms of them', async (t) => {
  const scores = await measure(hashEmbedder, readMemories())
  for (const [kind, reached] of scores) t.comment(`${kind}: ${JSON.stringify(reached)}`)
  t.ok((scores.get('lexical')?.['R@1'] ?? 0) >= 0.97)
  t.ok((scores.get('morphology')?.['R@1'] ?? 0) >= 0.9)
  t.equal(hashEmbedder.semantic, false, 'and nobody is told that it knows meanings')
})

t.test('finds the related words of any English word, and only those', async (t) => {
  const related = (word: string): string[] =>
    termsOf(word)
      .flatMap(relatedTerms)
      .map(({ term }) => term)
  for (const [word, expected] of [
    ['automobile', 'car'],
    ['physician', 'doctor'],
    ['purchase', 'buy'],
    ['zoom', 'zip'],
    ['aardvark', 'anteater'],
  ] as const)
    t.ok(
      related(word).includes(termsOf(expected)[0] ?? ''),
      `${word} → ${expected}: ${related(word).join(' ')}`,
    )
  for (const word of ['zzzz', 'qqqq', 'a', '漢字', '']) t.strictSame(related(word), [])
  t.ok(relatedTerms('car').every(({ share }) => share > 0 && share < 1))
})

function chosen(model: Parameters<typeof chooseEmbedder>[1]): Embedder {
  return chooseEmbedder(undefined, model, runtime, new MetricsBySource(now))
}

t.test('knows words alone where no model is installed', async (t) => {
  t.equal(chosen(undefined), hashEmbedder)
  t.strictSame([hashEmbedder.languages, wayOf(hashEmbedder)], [[], 'their words'])
})

t.test('loads the sentence model for the first English text, and answers any text', async (t) => {
  let threads = 0
  const count = (): void => {
    threads += 1
  }
  process.on('worker', count)
  t.teardown(() => process.off('worker', count))
  const embedder = chosen(findSentenceModel())
  t.match(embedder, { name: 'hash-v1+use-lite-en', semantic: true, languages: ['en'] })
  t.equal(wayOf(embedder), 'meaning in en, else by their words')
  const foreign = ['Die Rechnung geht an den Buchhalter.', '请记住这个', '😀', '']
  const spelled = await embedder.embed(foreign, patient)
  t.equal(threads, 0, 'other languages do not need it')
  const hostile = [
    'the a '.repeat(1_333),
    `the ${'\ufb03'.repeat(7_990)}`,
    `the ${'a'.repeat(7_990)}`,
    'the __proto__ constructor',
    'the \ud800 \0\u2581',
  ]
  const vectors = await embedder.embed(['the cat', ...foreign, ...hostile], patient)
  t.equal(threads, 1)
  t.ok([...spelled, ...vectors].every((vector) => vector.length === 896))
  t.ok([...spelled, ...vectors].every((vector) => Math.abs(Math.hypot(...vector) - 1) < 1e-5))
  t.strictSame(vectors.slice(1, 5).map(rounded), spelled.map(rounded))
})

t.test('tells English from other languages, also in a few words', async (t) => {
  for (const text of ['preferred currency', 'Okafor invoice PDF accountant', 'when is lunch'])
    t.ok(isEnglish(text), text)
  for (const text of ['Rechnung Buchhalter schicken', '发票 会计', 'zzzz qqqq', '', 'où est le chat'])
    t.notOk(isEnglish(text), text)
})

interface Asked {
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** An endpoint that gives these answers in turn, as status and body; the last again and again. */
async function openModel(
  t: Test,
  answers: readonly (readonly [status: number, body: unknown])[],
): Promise<{ readonly embedder: Embedder; readonly asked: readonly Asked[] }> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      asked.push({ path: request.url, headers: request.headers, body: JSON.parse(text) })
      const [status, body] = answers[Math.min(asked.length, answers.length) - 1] ?? [500, {}]
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  const model = { baseUrl: `${url}/v1`, apiKey: 'a key that nobody may read', embeddingModel: 'nomic' }
  return { embedder: chooseEmbedder(model, findSentenceModel(), runtime, new MetricsBySource(now)), asked }
}

const GOOD = [
  200,
  {
    data: [
      { index: 1, embedding: [0, 5] },
      { index: 0, embedding: [3, 4] },
    ],
  },
] as const

t.test('asks the named model and keeps its vectors in order', async (t) => {
  const { embedder, asked } = await openModel(t, [GOOD])
  t.match(embedder, { name: 'openai:nomic', semantic: true })
  const vectors = await embedder.embed(['one', 'two'], patient)
  t.strictSame(vectors.map(rounded), ['0.60000 0.80000', '0.00000 1.00000'])
  t.match(asked, [
    {
      path: '/v1/embeddings',
      headers: { authorization: 'Bearer a key that nobody may read' },
      body: { model: 'nomic', input: ['one', 'two'], encoding_format: 'float' },
    },
  ])
})

t.test('retries after a brief failure of the model', async (t) => {
  const { embedder, asked } = await openModel(t, [[500, { error: 'busy' }], GOOD])
  t.equal((await embedder.embed(['one', 'two'], patient)).length, 2)
  t.equal(asked.length, 2)
})

const FAULTS: readonly (readonly [what: string, status: number, body: unknown, code: string])[] = [
  ['stays down', 500, { error: { message: 'a key that nobody may read is wrong' } }, 'source_error'],
  ['refuses the key', 401, { error: { message: 'a key that nobody may read is wrong' } }, 'source_error'],
  ['limits us', 429, {}, 'source_limited'],
  ['speaks another way', 200, { embeddings: [[1]] }, 'source_error'],
  ['breaks off', 200, '{"data": [{"index": 0, "embedd', 'source_error'],
  ['leaves a text out', 200, { data: [{ index: 0, embedding: [1] }] }, 'source_error'],
  ['gives nothing', 200, { data: [{ index: 0, embedding: [] }] }, 'source_error'],
]

for (const [what, status, body, code] of FAULTS)
  t.test(`stores nothing, and keeps the key private, when the model ${what}`, async (t) => {
    const { embedder } = await openModel(t, [[status, body]])
    const fault = await embedder.embed(['one', 'two'], patient).catch((thrown: unknown) => thrown)
    t.match(fault, { name: 'Failure', code })
    t.notMatch(String(fault), /nobody may read/)
  })

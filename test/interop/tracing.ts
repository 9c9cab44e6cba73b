import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { listening } from '../support/http.ts'
import { blocksOf } from '../support/markdown.ts'
import { stockFetch } from '../support/payment.ts'
import { readSandboxFile, startServer } from '../support/server.ts'

const REGISTER = fileURLToPath(new URL('support/register-tracing.mjs', import.meta.url))
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'

interface ExportedSpan {
  readonly name: string
  /** As the SDK counts them: 0 internal, 1 server, 2 client. */
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly traceId: string
  readonly spanId: string
  readonly parentId?: string
}

const heard: IncomingHttpHeaders[] = []
const upstream = await listening(
  createServer(({ headers }, response) => {
    heard.push(headers)
    response.setHeader('content-type', 'application/json').end('{"warm":true}')
  }),
)
t.teardown(() => upstream.close())
const directory = t.testdir({
  'catalog.yaml': `catalog: 1
service: { name: Weather, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/weather:
    price: 0.001
    summary: Says how warm it is
    handler: proxy
    upstream: '${upstream.url}/weather'
    parameters: { city: { type: string, example: Oslo } }
    example: { warm: true }
`,
})
const file = join(directory, 'spans.json')

async function buy(env: Record<string, string>): Promise<void> {
  const server = await startServer({ args: ['--sandbox', '--catalog', join(directory, 'catalog.yaml')], env })
  const pay = stockFetch(readSandboxFile(server).evm.payerKey)
  const answer = await pay(`${server.url}/paid/weather?city=Tromso-secret`, {
    headers: { traceparent: `00-${TRACE}-${CALLER}-01` },
  })
  t.equal(answer.status, 200)
  await answer.text()
  await server.stop()
}

t.test('shows a purchase to the official SDK as parts of the trace of its buyer', async (t) => {
  await buy({ NODE_OPTIONS: `--import=${REGISTER}`, SPANS_FILE: file })
  const spans: ExportedSpan[] = JSON.parse(readFileSync(file, 'utf8'))
  const own = spans.filter(({ traceId }) => traceId === TRACE)
  const requests = own.filter(({ name }) => name === 'GET /paid/weather')
  t.equal(requests.length, 2, 'the 402 and the purchase')
  for (const { parentId, kind } of requests) {
    t.equal(parentId, CALLER)
    t.equal(kind, 1)
  }
  const purchase = requests.find(({ attributes }) => attributes['ratecard.paid'] === true)
  t.match(purchase?.attributes, {
    'http.response.status_code': 200,
    'ratecard.payment': /^pay_/,
    'http.route': '/paid/weather',
  })
  const partsOf = (id: string | undefined): ExportedSpan[] => own.filter(({ parentId }) => parentId === id)
  const parts = partsOf(purchase?.spanId)
  for (const name of ['verify', 'handler', 'settle', 'ledger commit'])
    t.ok(
      own.some((each) => each.name === name),
      name,
    )
  t.match(parts.find(({ name }) => name === 'settle')?.attributes, { 'ratecard.network': 'eip155:84532' })
  const handler = parts.find(({ name }) => name === 'handler')
  const [call] = partsOf(handler?.spanId)
  t.match(call, { name: 'GET upstream', kind: 2 })
  t.equal(heard.at(-1)?.['traceparent'], `00-${TRACE}-${call?.spanId}-01`, 'the upstream gets the trace')
  const said = JSON.stringify(spans)
  t.notMatch(said, /Tromso-secret|signature|0x[0-9a-fA-F]{40}/, 'neither arguments nor addresses')
})

t.test('sends the spans to a collector, registered as the page on tracing says', async (t) => {
  const received: Buffer[] = []
  const asked = new Set<string>()
  const collector = await listening(
    createServer((request, response) => {
      asked.add(`${request.method} ${request.url} ${request.headers['content-type']}`)
      void buffer(request).then((body) => {
        received.push(body)
        response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
      })
    }),
  )
  t.teardown(() => collector.close())
  const [registration] = blocksOf('docs/tracing.md').filter(({ text }) => text.includes('sdk.start()'))
  // Beside the packages that it imports.
  const file = fileURLToPath(new URL(`node_modules/.tracing-${process.pid}.mjs`, import.meta.url))
  writeFileSync(file, registration?.text ?? '')
  t.teardown(() => rmSync(file))
  await buy({ NODE_OPTIONS: `--import=${file}`, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  t.strictSame([...asked], ['POST /v1/traces application/x-protobuf'])
  // opentelemetry/proto/collector/trace/v1: resource_spans, scope_spans, spans; then name.
  const spans = received.flatMap((body) => membersOf(body, [1, 2, 2]))
  const names = spans.flatMap((span) => membersOf(span, [5])).map(String)
  for (const name of ['GET /paid/weather', 'verify', 'handler', 'GET upstream', 'settle', 'ledger commit'])
    t.ok(names.includes(name), name)
  const traces = spans.flatMap((span) => membersOf(span, [1])).map((id) => id.toString('hex'))
  t.ok(traces.includes(TRACE), 'in the trace of the buyer')
})

/** The members of a Protocol Buffers message that a path of field numbers leads to. */
function membersOf(message: Buffer, [first, ...rest]: readonly number[]): Buffer[] {
  if (first === undefined) return [message]
  const members: Buffer[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++] ?? 0
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    const type = tag & 7
    if (type === 0) varint()
    else if (type === 1) at += 8
    else if (type === 5) at += 4
    else {
      const length = varint()
      if (Math.floor(tag / 8) === first) members.push(message.subarray(at, at + length))
      at += length
    }
  }
  return members.flatMap((member) => membersOf(member, rest))
}

t.test('hands on nothing where no SDK is registered', async (t) => {
  await buy({})
  t.equal(heard.at(-1)?.['traceparent'], undefined)
})

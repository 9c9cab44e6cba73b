import { systemRuntime } from '../../../../../src/engine/base/runtime.ts'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { listening } from '../../../../support/http.ts'
import { createRpc, type Rpc } from '../../../../../src/engine/chains/evm/json-rpc.ts'

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

/** What a node answers: HTTP status and body; `down`: it closes the connection. */
type Reply = { readonly status?: number; readonly body: unknown } | 'down'

/** A node that answers as told, and the bodies of the requests that it has received. */
async function openNode(t: Test, reply: (body: Call | readonly Call[]) => Reply) {
  const requests: (Call | readonly Call[])[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const body = (await json(request)) as Call | readonly Call[]
      requests.push(body)
      const told = reply(body)
      if (told === 'down') request.socket.destroy()
      else
        response
          .writeHead(told.status ?? 200, { 'content-type': 'application/json' })
          .end(typeof told.body === 'string' ? told.body : JSON.stringify(told.body))
    })()
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  return { rpc: createRpc(url, fetch, systemRuntime.deadline), requests }
}

const isBatch = (body: Call | readonly Call[]): body is readonly Call[] => Array.isArray(body)
const echo = ({ id, params: [value] }: Call) => ({ jsonrpc: '2.0', id, result: value })
const echoAll = (body: Call | readonly Call[]): Reply => ({
  body: isBatch(body) ? body.map(echo) : echo(body),
})

const text = (result: unknown): string | undefined => (typeof result === 'string' ? result : undefined)
const askFor = (rpc: Rpc, values: readonly string[]) =>
  Promise.all(values.map((value) => rpc.ask('echo', [value], text)))
const resultsOf = (values: readonly string[]) => values.map((result) => ({ kind: 'result', result }))
const sizesOf = (requests: readonly (Call | readonly Call[])[]) =>
  requests.map((body) => (isBatch(body) ? body.length : 1))

t.test('asks what is asked at the same time in one request', async (t) => {
  const { rpc, requests } = await openNode(t, (body) =>
    // A node may answer in any order.
    isBatch(body) ? { body: body.map(echo).toReversed() } : { body: echo(body) },
  )
  const values = ['a', 'b', 'c']
  t.same(await askFor(rpc, values), resultsOf(values))
  t.same(await askFor(rpc, ['d']), resultsOf(['d']))
  t.same(sizesOf(requests), [3, 1])
})

t.test('divides many calls, so that no request is too long for a node', async (t) => {
  const { rpc, requests } = await openNode(t, echoAll)
  const values = Array.from({ length: 25 }, (_, index) => String(index))
  t.same(await askFor(rpc, values), resultsOf(values))
  t.same(
    sizesOf(requests).toSorted((a, b) => b - a),
    [10, 10, 5],
  )
})

t.test('sends a call that may be slow by itself, and does not wait for it', async (t) => {
  const { rpc, requests } = await openNode(t, echoAll)
  const [alone, ...others] = await Promise.all([
    rpc.askAlone('echo', ['slow'], text),
    rpc.ask('echo', ['a'], text),
    rpc.ask('echo', ['b'], text),
  ])
  t.same([alone, ...others], resultsOf(['slow', 'a', 'b']))
  t.same(new Set(sizesOf(requests)), new Set([1, 2]))
})

t.test('gives each call of a batch its own refusal', async (t) => {
  const { rpc, requests } = await openNode(t, (body) =>
    isBatch(body)
      ? {
          body: body.map((call) =>
            call.params[0] === 'bad'
              ? { jsonrpc: '2.0', id: call.id, error: { code: 3, message: 'execution reverted' } }
              : echo(call),
          ),
        }
      : 'down',
  )
  t.match(await askFor(rpc, ['good', 'bad']), [
    { kind: 'result', result: 'good' },
    { kind: 'refused', code: 3, message: 'execution reverted' },
  ])
  t.equal(requests.length, 1)
})

const REFUSALS: Readonly<Record<string, (batch: readonly Call[]) => Reply>> = {
  'with one error for all': () => ({
    body: { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'invalid request' } },
  }),
  'with a status and a page': () => ({ status: 400, body: '<h1>400 Bad Request</h1>' }),
  'with an error for each call': (batch) => ({
    body: batch.map(({ id }) => ({
      jsonrpc: '2.0',
      id,
      error: { code: -32005, message: 'Batch size exceeded' },
    })),
  }),
  'by leaving calls out': (batch) => ({ body: batch.slice(0, 1).map(echo) }),
  'by answering one of them': ([first]) => ({ body: first === undefined ? {} : echo(first) }),
}

for (const [manner, refuse] of Object.entries(REFUSALS))
  t.test(`asks each call by itself when a node refuses batches ${manner}, and from then on`, async (t) => {
    const { rpc, requests } = await openNode(t, (body) =>
      isBatch(body) ? refuse(body) : { body: echo(body) },
    )
    t.same(await askFor(rpc, ['a', 'b']), resultsOf(['a', 'b']))
    t.same(sizesOf(requests), [2, 1, 1])
    t.same(await askFor(rpc, ['c', 'd']), resultsOf(['c', 'd']))
    t.same(sizesOf(requests), [2, 1, 1, 1, 1], 'no further batch')
  })

t.test('asks once, and says so, while a node cannot be reached', async (t) => {
  let state: 'down' | 'page' | 'open' = 'down'
  const { rpc, requests } = await openNode(t, (body) => {
    if (state === 'down') return 'down'
    return state === 'page' ? { status: 502, body: '<h1>502 Bad Gateway</h1>' } : echoAll(body)
  })
  t.same(await askFor(rpc, ['a', 'b']), [{ kind: 'unreachable' }, { kind: 'unreachable' }])
  t.same(sizesOf(requests), [2])
  state = 'page'
  t.same(await askFor(rpc, ['a', 'b']), [{ kind: 'unreachable' }, { kind: 'unreachable' }])
  state = 'open'
  t.same(await askFor(rpc, ['a', 'b']), resultsOf(['a', 'b']))
  t.equal(sizesOf(requests).at(-1), 2, 'an outage is no refusal of batches')
})

t.test('keeps calls with different time limits apart', async (t) => {
  const { rpc, requests } = await openNode(t, echoAll)
  await Promise.all([
    rpc.ask('echo', ['a'], text, 400),
    rpc.ask('echo', ['b'], text),
    rpc.ask('echo', ['c'], text),
  ])
  t.same(new Set(sizesOf(requests)), new Set([1, 2]))
})

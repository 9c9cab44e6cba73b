import t from 'tap'
import { readJson } from '../../../../src/service/sources/json-body.ts'

function reply(body: ConstructorParameters<typeof Response>[0], type: string | undefined): Response {
  const response = new Response(body)
  if (type === undefined) response.headers.delete('content-type')
  else response.headers.set('content-type', type)
  return response
}

t.test('reads a body that declares JSON or no type', async (t) => {
  for (const type of [
    'application/json',
    'Application/JSON; charset=utf-8',
    'text/json',
    'application/ld+json',
    undefined,
  ])
    t.same(await readJson(reply('{"a":1}', type), 100), { kind: 'json', value: { a: 1 } }, String(type))
})

t.test('reads JSON under any media type, and refuses a page under any', async (t) => {
  for (const type of ['text/html', 'text/plain', 'application/jsonp', 'application/javascript']) {
    t.same(await readJson(reply('{"a":1}', type), 100), { kind: 'json', value: { a: 1 } }, type)
    t.same(await readJson(reply('<!doctype html>', type), 100), { kind: 'fault', fault: 'not JSON' }, type)
  }
})

t.test('takes a limit reported with status 200 for a refusal', async (t) => {
  // As public clients of SteamSpy meet it now and then.
  const refusal = await readJson(reply('Connection failed: Too many connections', 'text/html'), 100)
  t.same(refusal, { kind: 'fault', fault: 'a refusal' })
})

t.test('counts the size in bytes, and accepts the limit itself', async (t) => {
  t.match(await readJson(reply('"äöü"', 'text/json'), 8), { kind: 'json', value: 'äöü' })
  t.same(await readJson(reply('"äöü"', 'text/json'), 7), { kind: 'fault', fault: 'too large' })
})

t.test('cuts an endless body off at the limit', async (t) => {
  let cancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1000).fill(32)),
    cancel: () => void (cancelled = true),
  })
  t.same(await readJson(reply(endless, 'text/json'), 10_000), { kind: 'fault', fault: 'too large' })
  t.ok(cancelled)
})

t.test('reports empty bodies, white space, broken text and broken UTF-8 as faults', async (t) => {
  t.same(await readJson(reply(null, 'text/json'), 100), { kind: 'fault', fault: 'empty' })
  t.same(await readJson(reply(' \r\n', 'text/json'), 100), { kind: 'fault', fault: 'empty' })
  t.same(await readJson(reply('{"a":', 'text/json'), 100), { kind: 'fault', fault: 'not JSON' })
  const broken = new Uint8Array([34, 0xff, 34])
  t.same(await readJson(reply(broken, 'text/json'), 100), { kind: 'fault', fault: 'not JSON' })
})

t.test('accepts a JSON null, and leaves it to the schema', async (t) => {
  t.same(await readJson(reply('null', 'text/json'), 100), { kind: 'json', value: null })
})

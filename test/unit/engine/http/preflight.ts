import t from 'tap'
import { Preflights } from '../../../../src/engine/http/payment-required.ts'
import { compileValidator, type RawParameters } from '../../../../src/engine/catalog/validator.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'

/** A route with two parameters, and the queries that were looked at. */
function shelf() {
  const path = '/paid/x'
  const parameters = 'n: { type: integer, default: 1 }, name: { type: string, required: true, example: a }'
  const route = routeAt(
    compileRoutes(`  ${path}: { price: 1, summary: X, parameters: { ${parameters} } }\n`),
    path,
  )
  const validate = compileValidator(route, 'ignore')
  const looked: string[] = []
  const served = {
    route,
    readiness: 'ready' as const,
    validate: (raw: RawParameters) => {
      looked.push(raw.query)
      return validate(raw)
    },
  }
  const preflights = new Preflights('https://x.example')
  const ask = (query: string) =>
    preflights.of({ served, parameters: { path: {}, query }, resource: `https://x.example${path}` })
  return { ask, looked }
}

t.test('binds a payment to the request, in any spelling of it', async (t) => {
  const { ask } = shelf()
  const { scope, wouldFail } = ask('name=a')
  t.match(scope, /^[a-z/-]+:[\w-]{43}$/)
  t.equal(wouldFail, undefined)
  t.equal(ask('n=1&name=a').scope, scope, 'the default was written out')
  t.not(ask('name=b').scope, scope)
  t.equal(ask('name=a').scope, scope, 'asked again')
})

t.test('predicts a refusal in ASCII, however often it is asked', async (t) => {
  const { ask, looked } = shelf()
  for (const _ of [1, 2, 3]) {
    const { scope, wouldFail } = ask('n=%C3%A9&name=a')
    t.equal(scope, 'none')
    t.match(JSON.parse(wouldFail ?? '{}'), {
      status: 422,
      code: 'parameters_invalid',
      detail: [{ loc: ['query', 'n'], input: 'é' }],
    })
    t.match(wouldFail, /^[ -~]+$/)
  }
  t.equal(looked.length, 1, 'worked out once')
})

t.test('bounds its memory under a flood of different requests', async (t) => {
  const { ask, looked } = shelf()
  for (let n = 0; n < 1_001; n += 1) ask(`name=a&n=${n}`)
  looked.length = 0
  ask('name=a&n=1000')
  t.same(looked, [], 'the last one is kept')
  ask('name=a&n=0')
  t.same(looked, ['name=a&n=0'], 'the first one had to go')
  const long = `name=${'a'.repeat(300)}`
  ask(long)
  ask(long)
  t.same(looked.slice(1), [long, long], 'a long one is never kept')
})

t.test('names ignored parameters in the 402', async (t) => {
  const { ask } = shelf()
  t.equal(ask('name=a').ignored, undefined)
  const { ignored, scope } = ask('name=a&nmae=b&été=1')
  t.strictSame(JSON.parse(ignored ?? '[]'), [{ name: 'nmae', did_you_mean: 'name' }, { name: 'été' }])
  t.match(ignored, /^[ -~]+$/)
  t.equal(scope, ask('name=a').scope)
})

t.test('keeps the methods of one path apart', async (t) => {
  const { routes } = compileRoutes(`  /paid/x:
    price: 1
    summary: X
    parameters: { name: { type: string, required: true, example: a } }
  DELETE /paid/x: { price: 1, summary: X }
`)
  const preflights = new Preflights('https://x.example')
  const [read, deleted] = routes.map((route) =>
    preflights.of({
      served: { route, readiness: 'ready', validate: compileValidator(route, 'ignore') },
      parameters: { path: {}, query: '' },
      resource: 'https://x.example/paid/x',
    }),
  )
  t.equal(read?.scope, 'none', 'GET needs a name')
  t.match(deleted?.scope, /^delete\/x:/, 'DELETE does not')
})

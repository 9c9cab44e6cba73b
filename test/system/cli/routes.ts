import t from 'tap'
import { PAID, SAMPLES } from '../../fixtures/specification.ts'
import { runProgram } from '../../support/server.ts'

interface Row {
  readonly path: string
  readonly price: string | null
  readonly kind: string
  readonly available: boolean
}

t.test('prints every route with exactly these keys for scripts', async (t) => {
  const { code, stdout, stderr } = await runProgram(['routes', '--json'])
  t.equal(code, 0)
  t.equal(stderr, '')
  const rows = JSON.parse(stdout) as Row[]
  for (const row of rows) {
    t.strictSame(Object.keys(row), [
      'method',
      'path',
      'kind',
      'price',
      'protocols',
      'parameters',
      'handler',
      'cache',
      'available',
    ])
  }
  const paid = rows.filter(({ kind }) => kind === 'paid')
  t.strictSame(
    Object.fromEntries(paid.map(({ path, price }) => [path, Number(price)])),
    Object.fromEntries(PAID.map(({ path, price }) => [path, Number(price)])),
  )
  t.strictSame(
    rows
      .filter(({ kind }) => kind === 'sample')
      .map(({ path }) => path)
      .sort(),
    SAMPLES.map(({ path }) => path).sort(),
  )
  t.ok(rows.filter(({ kind }) => kind !== 'paid').every(({ price }) => price === null))
  t.strictSame(
    rows.find(({ path }) => path === '/paid/gamestore/top-sellers'),
    {
      method: 'GET',
      path: '/paid/gamestore/top-sellers',
      kind: 'paid',
      price: '0.005000',
      protocols: ['x402', 'mpp'],
      parameters: [{ name: 'country', in: 'query', type: 'string', required: false, default: 'US' }],
      handler: 'gamestore/top-sellers',
      cache: '10m',
      available: true,
    },
  )
  t.equal(rows.find(({ path }) => path === '/paid/streaming/hype')?.available, false, 'not written yet')
})

t.test('prints a table for people', async (t) => {
  const { code, stdout } = await runProgram(['routes'])
  t.equal(code, 0)
  const [head = '', ...lines] = stdout.trimEnd().split('\n')
  t.match(head, /^PATH +TITLE +PRICE +CACHE +SERVED +PARAMETERS$/)
  t.equal(lines.length, PAID.length + SAMPLES.length)
  t.match(stdout, /^\/paid\/util\/workday +Working days +\$0\.002 +- +yes +country=US region date days=14$/m)
  t.match(stdout, /^\/sample\/ping +Ping \(free preview\) +free +- +yes$/m)
  t.match(stdout, /^\/paid\/gamestore\/app\/\{appid\} .* appid\*$/m)
})

import t from 'tap'
import type { Catalog } from '../../../../src/engine/catalog/catalog.ts'
import { compileText } from '../../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../../src/engine/documents/all.ts'
import { GuardedPaths } from '../../../../src/engine/http/guarded-paths.ts'
import { readingsOf } from '../../../../src/engine/http/path-readings.ts'

const SITE = 'http://site.example:3000'

function guardOf(routes: string, deny: readonly string[] = []): GuardedPaths {
  const text = `catalog: 1
service: { name: Shop, version: '1' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
${routes}`
  const { catalog }: { readonly catalog: Catalog } = compileText('catalog.yaml', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  })
  return new GuardedPaths(catalog, { url: SITE, deny })
}

function holding(guard: GuardedPaths, paths: readonly string[]): string[] {
  return paths.filter((path) => guard.holds(path))
}

t.test('holds a declared path in each form, and no other path', async (t) => {
  const guard = guardOf(
    '  /v1/Report/{id}.pdf: { price: 0.1, summary: R, parameters: { id: { type: string, example: a } } }\n',
  )
  const held = ['/v1/Report/7.pdf', '/V1/REPORT/7.PDF', '/v1/report/7.pdf.json', '/v1/Report;x/a%20b%2epdf']
  t.same(holding(guard, held), held)
  t.same(holding(guard, ['/v1/Report/7', '/v1/Report', '/v1/Reports/7.pdf', '/v1/Report/7.pdf/pages']), [])
})

t.test('reads a path in every order of steps', async (t) => {
  const guard = guardOf('  /v1/work: { price: 0.1, summary: W }\n')
  const held = [
    '/v1/w%6frk;%2fx',
    '/v1;%2fx/w%6Frk',
    '/x/..;y/v1/work',
    '/x//../v1/work',
    '/v1/work%253b.json%2500',
    '/v1%25252fwork',
    '/v1%2fw%c1%afrk',
    '/v1/x/..%20/work',
    '/v1/x/..%20./../work',
    '/v1/.%%2f00/%2e./work',
    '/v1/x%2fy%ff/%2e%2E/w%6frk',
    '//host/v1/work',
    '/v1%ff/../v1/work',
    '/v1/work...',
    '/v1/.%20/work',
    '/v1/%EF%BD%97ork',
    '/v1/wor%E2%84%AA',
  ]
  t.same(holding(guard, held), held)
})

t.test('holds a path that ends at a mark for some servers and goes on behind it for others', async (t) => {
  const guard = guardOf(
    '  /v1/items/{id}: { price: 0.1, summary: I, parameters: { id: { type: string, example: a } } }\n',
  )
  const held = ['/v1/items/;\\#/a=b/a1', '/v1/items/%3f/#/x/y', '/v1/items/%23/;/x/y', '/v1/items/a#;?/x/y']
  t.same(holding(guard, held), held)
})

t.test('holds where the site itself has what is sold', async (t) => {
  const guard = guardOf(`  /v1/ask/{topic}:
    price: 0.1
    summary: A
    upstream: ${SITE}/internal/ask-{topic}/(x)/answer?full=1
    parameters: { topic: { type: string, example: a } }
  /v1/other: { price: 0.1, summary: O, upstream: 'http://other.example/elsewhere' }
  /v1/free: { price: free, summary: F, upstream: '${SITE}/given' }
`)
  const held = ['/internal/ask-tea/(x)/answer', '/INTERNAL/anything/%28x%29/answer/', '/v1/free']
  t.same(holding(guard, held), held)
  t.same(holding(guard, ['/elsewhere', '/given', '/internal/ask-tea', '/internal']), [])
})

t.test('holds what is denied with everything below it', async (t) => {
  const guard = guardOf('  /v1/work: { price: 0.1, summary: W }\n', [
    '/admin/',
    '/users/*/keys',
    '/a.b',
    '/old/**/x',
  ])
  const held = [
    '/admin',
    '/admin/',
    '/ADMIN/users',
    '/%61dmin/x/y',
    '/x/..%2fadmin',
    '/users/7/keys',
    '/users/7/keys/3',
    '/a.b',
    '/old/1/2/x',
  ]
  t.same(holding(guard, held), held)
  t.same(holding(guard, ['/administration', '/users/7', '/users/7/8/keys', '/acb']), [])
})

t.test('refuses a path with more readings than can be told', async (t) => {
  const guard = guardOf('  /v1/work: { price: 0.1, summary: W }\n')
  for (const path of [
    `/${'.'.repeat(60_000)}`,
    `/x${'.a'.repeat(20_000)}`,
    `/${'%2541'.repeat(9_000)}${'.a'.repeat(9_000)}`,
  ]) {
    t.ok(readingsOf(path) === undefined, path.slice(0, 20))
    t.ok(guard.holds(path))
  }
  t.notOk(guard.holds(`/${'a/'.repeat(20_000)}`), 'a long path has few readings')
})

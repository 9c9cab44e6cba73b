import t from 'tap'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { inputSchema, parameterSchema } from '../../../../src/engine/catalog/input-schema.ts'
import { compileText, type Loaded } from '../../../../src/engine/catalog/load-catalog.ts'
import { compileArguments } from '../../../../src/engine/catalog/validator.ts'

const HEAD = `catalog: 1
service: { name: Shop, version: "1" }
payments: { currency: USD, x402: { networks: [base] } }
`
const SHOP = `${HEAD}categories: { tools: Tools, games: Games }
sources: { open: { title: Open data, resale: allowed, credentials: [KEY] } }
routes:
  /paid/util/workday/{country}:
    price: 0.005
    summary: Works
    cache: 5m
    sources: [open]
    example: ./good.json
    parameters:
      country: { type: string, format: country, example: US }
      days: { type: integer, default: 1, enum: [1, 2] }
      ids: { type: string, default: "1,2", list: { items: integer, max_items: 3 } }
    sample: { path: /sample/workday, parameters: {}, with: { country: US } }
documents: { index: [/, /index] }
files: { /robots.txt: "User-agent: *" }
`
function load(text: string, example = '{"ok":true}'): Loaded {
  return compileText('catalog.yaml', text, {
    handlers: ['ping', 'util/workday'],
    documents: ['index'],
    read: (path) => (path === './good.json' ? Buffer.from(example) : undefined),
  })
}

function revision(text: string, example?: string): string {
  return load(text, example).catalog.revision
}

t.test('keeps the revision when the same catalog is loaded again', async (t) => {
  t.equal(revision(SHOP), revision(SHOP))
  t.match(revision(SHOP), /^[A-Za-z0-9_-]{12}$/)
})

t.test('keeps the revision when only descriptions and layout change', async (t) => {
  const same: Readonly<Record<string, string>> = {
    'a comment': `# hello\n${SHOP}`,
    'Windows line ends': SHOP.replaceAll('\n', '\r\n'),
    'a byte order mark': `\ufeff${SHOP}`,
    'a price with more zeros': SHOP.replace('0.005', '"0.0050"'),
    'a default written out': SHOP.replace('currency: USD,', 'currency: USD, redeliver: 24h,'),
    'a nickname for its id': SHOP.replace('[base]', '["eip155:8453"]'),
    'the order of keys': SHOP.replace('tools: Tools, games: Games', 'games: Games, tools: Tools'),
  }
  for (const [what, text] of Object.entries(same)) t.equal(revision(text), revision(SHOP), what)
})

t.test('changes the revision with everything a buyer can notice', async (t) => {
  const other: Readonly<Record<string, string>> = {
    'a price': SHOP.replace('0.005', '0.006'),
    'the smallest step of a price': SHOP.replace('0.005', '0.005001'),
    'a default': SHOP.replace('default: 1,', 'default: 2,'),
    'a summary': SHOP.replace('Works', 'Work'),
    'a cache': SHOP.replace('5m', '6m'),
    'a network': SHOP.replace('[base]', '[base, polygon]'),
    'a fixed argument': SHOP.replace('{ country: US }', '{ country: DE }'),
    'a document’s place': SHOP.replace('/index]', '/home]'),
    'a file': SHOP.replace('User-agent: *', 'User-agent: a'),
    'a route more': SHOP.replace('documents:', '  /paid/ping: { price: 0.1, summary: Answers }\ndocuments:'),
  }
  const seen = new Set([revision(SHOP), revision(SHOP, '{"ok":false}')])
  for (const [what, text] of Object.entries(other)) {
    const found = revision(text)
    t.notOk(seen.has(found), what)
    seen.add(found)
  }
  t.equal(seen.size, Object.keys(other).length + 2, 'an example is content too')
})

t.test('freezes the catalog', async (t) => {
  const { catalog } = load(SHOP)
  const loose: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    if (!Object.isFrozen(value)) loose.push(path)
    for (const [key, below] of Object.entries(value)) visit(below, `${path}.${key}`)
  }
  visit(catalog, 'catalog')
  t.strictSame(loose, [])
  t.throws(() => Object.assign(catalog.operations[0] ?? {}, { price: 1n }), TypeError)
  t.throws(() => Object.assign(catalog.routes[0]?.parameters[0] ?? {}, { name: 'x' }), TypeError)
})

t.test('compiles a route and its tool to one operation', async (t) => {
  const { routes, operations } = load(SHOP).catalog
  t.equal(routes.length, 2)
  for (const route of routes) t.equal(route.operation, operations[0])
})

t.test('gives every route and every operation a name of its own', async (t) => {
  const paths = ['a_b', 'a/b', 'a/b/2', 'a_b_2', 'a', 'a/{b}', 'a/{b}/{c}', 'a.b', 'a~b']
  const routes = paths.map((path) => {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name}: { type: string, example: x }`)
    const upstream = 'upstream: https://internal.example/'
    return `  /paid/${path}: { price: 0.005, summary: S, ${upstream}, parameters: { ${names.join(', ')} }, sample: true }\n`
  })
  const free = '  /free/a: { price: free, summary: S, handler: ping }\n'
  const tools =
    'mcp_servers: { s: { title: S } }\ntools: { a: { server: s, price: free, handler: ping, summary: S } }\n'
  const { catalog } = load(`${HEAD}routes:\n${routes.join('')}${free}${tools}`)
  const names = catalog.routes.map(({ name }) => name)
  const ids = catalog.operations.map(({ id }) => id)
  t.equal(names.length, paths.length * 2 + 1)
  t.equal(new Set(names).size, names.length, names.join(' '))
  t.equal(new Set(ids).size, paths.length + 2, ids.join(' '))
})

t.test('keeps the name of a route for it, whichever route comes first', async (t) => {
  const { catalog } = load(`${HEAD}routes:
  /paid/a: { price: 0.005, summary: S, handler: ping, sample: true }
  /paid/b: { price: 0.005, summary: S, handler: ping, name: paid_a }
`)
  t.strictSame(
    catalog.routes.map(({ path, name }) => `${path} ${name}`),
    ['/paid/a paid_a_2', '/sample/a sample_a', '/paid/b paid_a'],
  )
})

t.test('compiles a catalog of 5,000 routes completely', async (t) => {
  const routes = Array.from(
    { length: 5000 },
    (_, index) => `  /paid/shop${index}/item/{id}:
    price: 0.${index + 1000}
    summary: Item of shop ${index}
    handler: util/workday
    parameters:
      id: { type: integer, minimum: 1, example: 7 }
      country: { type: string, default: US, format: country }
    sample: true
`,
  )
  const text = `${HEAD}routes:\n${routes.join('')}`
  const start = performance.now()
  const { catalog } = load(text)
  t.comment(`${Math.round(performance.now() - start)} ms`)
  t.equal(catalog.routes.length, 10_000)
  t.equal(new Set(catalog.routes.map(({ name }) => name)).size, 10_000)
  t.equal(catalog.operations.at(-1)?.price, 599_900n)
})

t.test('publishes the limits of lists and bodies that it holds', async (t) => {
  const { catalog } = load(`${HEAD}routes:
  /paid/a:
    price: 0.005
    summary: S
    handler: ping
    parameters:
      ids: { type: string, example: "a,b", list: { max_items: 3, min_items: 2 } }
      codes: { type: string, format: country, list: { max_items: 3 } }
  POST /paid/b:
    price: 0.005
    summary: S
    upstream: https://internal.example/
    body: { properties: { tags: { type: string, maxLength: 4, list: { max_items: 2 } } } }
  POST /paid/c:
    price: 0.005
    summary: S
    upstream: https://internal.example/
    body: { schema: { type: object, description: A thing }, example: { a: 1 }, max_size: 2 KB }
  POST /paid/d:
    price: 0.005
    summary: S
    upstream: https://internal.example/
    body: { media_type: text/plain, example: a }
`)
  const inputs = (path: string): { schema: JsonObject; takes: (given: object) => boolean } => {
    const route = catalog.routes.find((each) => each.path === path)
    if (route === undefined) throw new Error(path)
    const validate = compileArguments(route)
    const schema = inputSchema(route.parameters, route.operation.body)
    return { schema, takes: (given) => validate(given).kind === 'valid' }
  }
  const lists = inputs('/paid/a')
  t.match(lists.schema, {
    properties: {
      ids: {
        minItems: 2,
        maxItems: 3,
        items: { maxLength: 2000 },
        description: 'At most 2000 characters together.',
      },
      codes: { maxItems: 3, description: undefined },
    },
  })
  t.ok(lists.takes({ ids: ['a', 'b'] }))
  t.notOk(lists.takes({ ids: ['a'.repeat(1000), 'b'.repeat(1000)] }), 'with the separator 2001 characters')
  const body = inputs('/paid/b')
  t.match(body.schema, {
    properties: { tags: { maxItems: 2, items: { maxLength: 4 }, description: undefined } },
  })
  t.ok(body.takes({ tags: ['abcd', 'abcd'] }), 'an array has limits for its items only')
  t.notOk(body.takes({ tags: ['abcde'] }))
  t.match(inputs('/paid/c').schema, { properties: { body: { description: 'A thing. At most 2000 bytes.' } } })
  t.match(inputs('/paid/d').schema, { properties: { body: { maxLength: 1_000_000 } } })
  const [ids] = catalog.routes[0]?.parameters ?? []
  const { pattern: source } = ids === undefined ? {} : parameterSchema(ids)
  const pattern = new RegExp(typeof source === 'string' ? source : '^$', 'u')
  for (const [text, isTaken] of [
    ['a', false],
    ['a,b', true],
    [' a; b|c ', true],
    ['a,b,c,d', false],
    ['', false],
  ] as const)
    t.equal(pattern.test(text), isTaken, text)
})

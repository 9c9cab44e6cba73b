import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runLine, type Ran } from '../../../support/run-command.ts'
import { at, items } from '../../../support/documents.ts'
import { askJson } from '../../../support/http.ts'
import { serveUnpaid } from '../../../support/server.ts'

const CATALOG = `catalog: 1
service: { name: Mixed, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/item/{id}:
    price: 0.01
    summary: An item
    parameters: &item { id: { type: string, example: a1 } }
    sample: true
  POST /paid/translate:
    price: 0.002
    summary: Translates a text
    sample: true
    skill: translate
    body:
      properties:
        text: { type: string, required: true, maxLength: 1000, example: Guten Tag }
        target: { type: string, default: en, enum: [en, de] }
    example: { text: Good day }
  PUT /paid/item/{id}:
    price: 0.003
    summary: Replaces an item
    parameters: *item
    body:
      schema: { type: object, required: [name], properties: { name: { type: string } } }
      example: { name: Tea }
  DELETE /paid/item/{id}: { price: 0.001, summary: Deletes an item, parameters: *item }
  POST /paid/login:
    price: 0.001
    summary: Takes a form
    body:
      media_type: application/x-www-form-urlencoded
      properties: { user: { type: string, required: true, example: me & you } }
  POST /paid/ocr:
    price: 0.01
    summary: Reads a picture
    skill: ocr
    body: { media_type: image/png, max_size: 5 MB }
    response: { media_type: text/plain }
`
const HANDLERS = ['item', 'post/translate', 'put/item', 'delete/item', 'post/login', 'post/ocr']

// A folder of its own: a module that another file has loaded from the same address would answer here.
const folder = join(
  t.testdir({
    methods: {
      'catalog.yaml': CATALOG,
      handlers: {
        'index.js': `const f = async (given) => ({ source: [{ name: 'computed' }], body: { text: given.text ?? '' } })
export const handlers = { ${HANDLERS.map((name) => `'${name}': f`).join(', ')} }`,
      },
    },
  }),
  'methods',
)
const file = join(folder, 'catalog.yaml')
const server = await serveUnpaid(t, file)
const run = (...argv: string[]): Promise<Ran> => runLine(argv, { handlers: HANDLERS })
const textOf = async (path: string): Promise<string> => (await fetch(server.url + path)).text()

t.test(
  'doctor finds routes of every method the same in the catalog, the documents and the 402s',
  async (t) => {
    const { code, out } = await run('doctor', server.url, '--catalog', file)
    t.match(out, /^8 routes: catalog, .* say the same$/)
    t.equal(code, 0)
    const other = join(folder, 'other.yaml')
    writeFileSync(
      other,
      CATALOG.replace('price: 0.003', 'price: 0.004').replace('text: { type', 'words: { type'),
    )
    const found = await run('doctor', server.url, '--catalog', other)
    t.equal(found.code, 1)
    t.match(found.out, /^PUT \/paid\/item\/\{id\} +price +0\.004000/m)
    t.match(found.out, /^POST \/paid\/translate +parameters +words\*, target=en/m)
    t.notMatch(found.out, /^DELETE/m)
  },
)

t.test(
  'plan compares routes of every method, their bodies and when they are charged, with a service',
  async (t) => {
    const plan = (...changes: readonly (readonly [string, string])[]): Promise<Ran> => {
      const changed = join(folder, 'changed.yaml')
      writeFileSync(
        changed,
        changes.reduce((text, [from, to]) => text.replace(from, to), CATALOG),
      )
      return run('plan', changed, '--against', server.url)
    }
    t.match(await plan(), { code: 0, out: /no difference/ })
    for (const [change, alarm] of [
      [
        ['maxLength: 1000', 'maxLength: 500'],
        'breaks calls of POST /paid/translate: text has a narrower maxLength',
      ],
      [
        ['name: { type: string } }', 'name: { type: string, maxLength: 20 } }'],
        'breaks calls of PUT /paid/item/{id}: name has a narrower maxLength',
      ],
      [
        ['summary: An item', 'settle: upfront\n    summary: An item'],
        'breaks calls of /paid/item/{id}: charged before the work',
      ],
      [
        ['price: 0.001, summary: Deletes', 'price: 0.002, summary: Deletes'],
        'buyers pay more for: DELETE /paid/item/{id}',
      ],
      [['  POST /paid/ocr:', '  PUT /paid/ocr:'], 'buyers lose: POST /paid/ocr'],
    ] as const)
      t.match(await plan(change), { code: 2, out: `! ${alarm}` })
    const later = await plan([
      'DELETE /paid/item/{id}: { price',
      'DELETE /paid/item/{id}: { settle: after, price',
    ])
    t.match(later, { code: 0 }, 'charged later than before breaks nothing')
  },
)

t.test('documents say how routes of other methods are called', async (t) => {
  const guide = await textOf('/llms.txt')
  for (const line of [
    '/paid/item/{id}): $0.01. An item. Takes id*. Preview.',
    '/paid/translate): $0.002. POST, application/json body. Translates a text. Takes text*, target=en. Preview.',
    '/paid/item/{id}): $0.001. DELETE. Deletes an item. Charged first. Takes id*.',
    '/paid/ocr): $0.01. POST, image/png body. Reads a picture.',
  ])
    t.match(guide, line)
  t.match(at(await askJson(`${server.url}/.well-known/agent-card.json`), 'skills'), [
    { id: 'translate', inputModes: ['application/json'], outputModes: ['application/json'] },
    { id: 'ocr', inputModes: ['image/png'], outputModes: ['text/plain'] },
  ])
  const manual = await textOf('/docs.md')
  for (const line of [
    `curl -i -X POST '${server.url}/paid/login' -H 'Content-Type: application/x-www-form-urlencoded' --data-binary 'user=me+%26+you'`,
    'The body is image/png, up to 5,000,000 bytes. Answers with text/plain within 20 seconds.',
  ])
    t.match(manual, line)
  const pages = ['post_paid_translate', 'delete_paid_item_id', 'post_paid_ocr']
  const programs = (await Promise.all(pages.map((name) => textOf(`/docs/${name}`))))
    .join('')
    .replaceAll('&#x27;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&#x3D;', '=')
  for (const line of [
    `(await pay(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: "{\\"text\\":\\"Guten Tag\\"}" })).json()`,
    `(await pay(url, { method: 'DELETE' })).json()`,
    "body: await (await import('node:fs/promises')).readFile('body') })).text()",
  ])
    t.match(programs, line)
  const routes = items(at(await askJson(`${server.url}/status.json`), 'routes')).map((route) =>
    at(route, 'path'),
  )
  t.ok(routes.includes('DELETE /paid/item/{id}') && routes.includes('/paid/item/{id}'))
})

t.test('the page that a 402 names shows a program that sends its method and body', async (t) => {
  const programOf = async (path: string, method: string): Promise<string> => {
    const offer = await fetch(server.url + path, { method, headers: { accept: 'application/json' } })
    const { docs } = (await offer.json()) as { readonly docs: string }
    return textOf(`${new URL(docs).pathname}.md`)
  }
  const sent =
    "pay(url, { method: 'POST', headers: { 'Content-Type': 'image/png' }, body: await (await import("
  t.match(await programOf('/paid/ocr', 'POST'), sent)
  t.match(await programOf('/paid/item/a1', 'DELETE'), "(await pay(url, { method: 'DELETE' })).json())")
  t.match(await programOf('/paid/item/a1', 'GET'), '(await pay(url)).json())')
  const { resources } = await askJson(`${server.url}/.well-known/x402`)
  t.equal(items(resources).filter((each) => each === `${server.url}/paid/item/a1`).length, 1)
})

t.test('serves the free sample of a POST for the body that its documents show', async (t) => {
  const manual = await textOf('/docs.md')
  const [, path = '', body = ''] =
    /curl -X POST '[^']*(\/sample\/[^']*)' -H 'Content-Type: application\/json' --data-binary '([^']*)'/.exec(
      manual,
    ) ?? []
  const answer = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  t.equal(answer.status, 200)
  t.match(await answer.json(), { endpoint: '/sample/translate', preview: true, text: 'Guten Tag' })
})

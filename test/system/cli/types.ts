import t from 'tap'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { format } from 'prettier'
import { runLine } from '../../support/run-command.ts'
import { runProgram } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'

const COMMITTED = fileURLToPath(new URL('../../../src/service/handlers/catalog.ts', import.meta.url))
const STYLE = { parser: 'typescript', semi: false, singleQuote: true, printWidth: 110 } as const

t.test('prints the committed types of the handlers', async (t) => {
  const { code, stdout, stderr } = await runProgram(['types'])
  t.equal(code, 0)
  t.equal(stderr, '')
  t.equal(await format(stdout, STYLE), readFileSync(COMMITTED, 'utf8'))
})

t.test('prints types before the handlers exist', async (t) => {
  const shop = writeShop(
    t,
    '  /paid/new/{id}: { price: 1, summary: X, parameters: { id: { type: integer, example: 1 } } }\n',
  )
  const { code, out } = await runLine(['types', shop.catalog])
  t.equal(code, 0)
  t.match(out, "from 'ratecard/handler'")
  t.match(out, /new[^]*id: number/)
})

t.test('types --out replaces the file in one step, and keeps it when the catalog has errors', async (t) => {
  const { catalog, directory } = writeShop(t, '  /paid/new: { price: 1, summary: X }\n')
  const file = join(directory, 'catalog.d.ts')
  t.match(await runLine(['types', catalog, '--out', file]), { code: 0, out: '' })
  const text = readFileSync(file, 'utf8')
  t.match(text, "from 'ratecard/handler'")
  writeFileSync(catalog, readFileSync(catalog, 'utf8').replace('price: 1', 'price: none'))
  t.equal((await runLine(['types', catalog, '--out', file])).code, 1)
  t.equal(readFileSync(file, 'utf8'), text)
  t.notMatch(readdirSync(directory).join(), /\.tmp/, 'no draft is left')
})

t.test('types bodies by their properties, schemas and media types', async (t) => {
  const shop = writeShop(
    t,
    `  POST /paid/a:
    price: 1
    summary: X
    body: { properties: { text: { type: string, required: true, example: x }, deep: { type: object } } }
  POST /paid/b: { price: 1, summary: X, body: { media_type: image/png } }
  PUT /paid/c: { price: 1, summary: X, body: { media_type: text/plain } }
  PATCH /paid/d:
    price: 1
    summary: X
    body:
      example: { tags: [a] }
      schema:
        type: object
        required: [tags]
        properties:
          tags: { type: array, items: { $ref: '#/$defs/tag' } }
          more: { anyOf: [{ type: integer }, { type: 'null' }] }
        $defs: { tag: { enum: [a, b] } }
`,
  )
  const { code, out } = await runLine(['types', shop.catalog])
  t.equal(code, 0)
  t.match(out, /'post\/a': \{\n    readonly text: string\n    readonly deep\?: JsonObject\n/)
  t.match(out, /'post\/b': \{\n    readonly body: Uint8Array\n/)
  t.match(out, /'put\/c': \{\n    readonly body: string\n/)
  t.match(out, 'readonly body: { readonly "tags": readonly ("a" | "b")[]; readonly "more"?: number | null }')
})

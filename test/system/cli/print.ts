import t from 'tap'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { compileText } from '../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../src/engine/documents/all.ts'
import { runLine } from '../../support/run-command.ts'
import { runProgram } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

t.test('prints the schema that the check uses', async (t) => {
  const { code, stdout, stderr } = await runProgram(['print', 'schema'])
  t.equal(code, 0)
  t.equal(stderr, '')
  t.strictSame(JSON.parse(stdout), JSON.parse(readFileSync(`${ROOT}catalog.schema.json`, 'utf8')))
})

t.test('prints a document as it is served, with the address of this machine', async (t) => {
  const { code, stdout } = await runProgram(['print', '/openapi.json'], {
    BASE_URL: 'https://api.example.com',
  })
  t.equal(code, 0)
  const openapi = JSON.parse(stdout) as { openapi: string; servers: { url: string }[] }
  t.match(openapi.openapi, /^3\.1/)
  t.match(JSON.stringify(openapi.servers), 'https://api.example.com')
})

t.test('prints every document of a catalog', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 1, summary: Greets }\n')
  const text = readFileSync(shop.catalog, 'utf8')
  const { catalog } = compileText('c', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  })
  const paths = Object.entries(catalog.documents).flatMap(([name, { paths }]) =>
    name === 'health' ? [] : paths,
  )
  t.ok(paths.length >= 3)
  for (const path of paths) {
    const { code, out, err } = await runLine(['print', path, '--catalog', shop.catalog], {
      handlers: ['greet'],
    })
    t.equal(code, 0, path)
    t.equal(err, '')
    t.match(out, 'Small shop')
  }
})

t.test('answers an unknown path with the paths that exist', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 1, summary: Greets }\n')
  const { code, out, err } = await runLine(['print', '/nothing', '--catalog', shop.catalog], {
    handlers: ['greet'],
  })
  t.equal(code, 1)
  t.equal(out, '')
  t.match(err, 'no document is served at /nothing; there are: /, /openapi.json, /llms.txt')
})

t.test('prints the errors of a broken catalog alone', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { summary: Greets }\n')
  for (const argv of [
    ['print', '/', '--catalog', shop.catalog],
    ['routes', shop.catalog],
    ['types', shop.catalog],
  ]) {
    const { code, out, err } = await runLine(argv, { handlers: ['greet'] })
    t.equal(code, 1)
    t.equal(out, '')
    t.match(err, /catalog\.yaml:6:\d+ .*price/)
  }
})

t.test('prints a server.json whose placeholder address the MCP registry refuses', async (t) => {
  for (const server of ['game', 'memory', 'tools']) {
    const { code, stdout } = await runProgram(['print', `mcp/${server}/server.json`], {
      BASE_URL: 'https://api.example.com',
      MCP_URL: 'https://mcp.example.com',
    })
    t.equal(code, 0)
    const printed = JSON.parse(stdout) as Record<string, string> & { remotes: unknown; icons: unknown }
    t.equal(
      printed['$schema'],
      'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    )
    // What the schema of the registry asks for, and whose namespace it is.
    t.match(printed['name'], /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
    t.equal(printed['name'], `com.example.api/${server}`)
    for (const text of [printed['title'], printed['description']])
      t.ok(text !== undefined && text.length > 0 && text.length <= 100, `${text}`)
    t.match(printed['version'], /^\d+\.\d+\.\d+$/)
    t.match(printed['websiteUrl'], /^https:\/\/api\.example\.com\/docs\/servers\//)
    t.match(printed.icons, [{ src: /^https:/, mimeType: 'image/svg+xml', sizes: ['any'] }])
    const url = server === 'game' ? 'https://mcp.example.com/mcp' : `https://api.example.com/mcp/${server}`
    t.strictSame(printed.remotes, [{ type: 'streamable-http', url }])
  }
})

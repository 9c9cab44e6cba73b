import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import { openProductionService } from './support/shipped-service.ts'
import { runTool } from './support/tool.ts'

const service = await openProductionService(t)
// Below the packages, so that the client finds the one it is built on.
const packages = fileURLToPath(new URL('./node_modules/', import.meta.url))
const directory = mkdtempSync(join(packages, '.client-'))
t.teardown(() => rmSync(directory, { recursive: true }))

const CLIENT = `
import createClient from 'openapi-fetch'
import type { components, paths } from './service.d.ts'

const client = createClient<paths>({ baseUrl: '${service.url}' })
const unpaid = await client.GET('/paid/gamestore/app/{appid}', { params: { path: { appid: 730 } } })
const wrong = await client.GET('/sample/services/quote', { params: { query: { need: 'flowers', budget: -1 } } })
if (wrong.response.status === 422) {
  const refusal = wrong.error as components['schemas']['HTTPValidationError']
  console.log(refusal.detail?.[0]?.loc.join('.'))
}
console.log(unpaid.response.status)

// @ts-expect-error: a required parameter is missing
void client.GET('/sample/services/quote', { params: { query: {} } })
// @ts-expect-error: there is no such route
void client.GET('/paid/nothing')
// @ts-expect-error: a number is due
void client.GET('/paid/gamestore/app/{appid}', { params: { path: { appid: 'half-life' } } })
`

const SETTINGS = {
  compilerOptions: { strict: true, target: 'es2022', module: 'nodenext', lib: ['es2022', 'dom'], types: [] },
  files: ['client.ts'],
}

t.test('generates a client that compiles and rejects wrong calls', async (t) => {
  const types = astToString(await openapiTS(new URL(`${service.url}/openapi.json`)))
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(SETTINGS))
  writeFileSync(join(directory, 'service.d.ts'), types)
  writeFileSync(join(directory, 'client.ts'), CLIENT)
  const compiled = await runTool('typescript/bin/tsc', ['-p', directory])
  t.equal(compiled.code, 0, compiled.out)
  const { out, err } = await runTool(join(directory.slice(packages.length), 'client.js'), [])
  t.equal(out, 'query.budget\n402\n', err)
})

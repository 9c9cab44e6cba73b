import { fillPath } from '../../engine/catalog/catalog.ts'
import type { Json, JsonObject } from '../../engine/base/json.ts'
import { type Call } from '../command.ts'
import { at, listAt, readObject } from '../json-access.ts'
import { clean } from '../../command-line/printable.ts'
import { examplePath, openapiOperations, splitKey } from '../openapi-document.ts'
import { checkListing, type ProbedOperation, type ProbedService } from './listing-rules.ts'
import { originOf } from './running-service.ts'
import { printResults } from './check-result.ts'
import { visit, visitEach } from './visit.ts'

/** Sends a service the requests of the registries' probes, and reports how each registry would treat the answers. */
export async function examineListing(call: Call, target: string): Promise<number> {
  const { terminal } = call
  const origin = originOf(target)
  const got = await visit(origin, '/openapi.json')
  const openapi = got.kind === 'answer' && got.status === 200 ? readObject(got.text) : undefined
  if (openapi === undefined) {
    const reason = got.kind === 'fault' ? got.reason : `it answers ${got.status}`
    terminal.err(
      `ratecard doctor: ${origin}/openapi.json is no JSON object (${clean(reason)}): registries read it first`,
    )
    return 1
  }
  const service = await probe(origin, openapi, (name) => terminal.progress(clean(name)))
  terminal.progress('')
  const results = checkListing(service).map((each) => ({ ...each, message: clean(each.message) }))
  return printResults(call, results)
}

async function probe(
  origin: string,
  openapi: JsonObject,
  progress: (name: string) => void,
): Promise<ProbedService> {
  const operations = openapiOperations(openapi)
  const paid = operations.filter(([, declared]) => at(declared, 'x-payment-info') !== undefined)
  const sold = await visitEach(paid, ([key, declared]) => {
    progress(splitKey(key)[1])
    return probeOperation(origin, key, declared)
  })
  const status = await visit(origin, '/status.json')
  return {
    origin,
    openapi,
    operations: operations.length,
    sold,
    listings: status.kind === 'answer' ? listAt(readObject(status.text), 'listings') : [],
    favicon: await visit(origin, '/favicon.ico', { method: 'HEAD' }),
    mcpRegistryAuth: await visit(origin, '/.well-known/mcp-registry-auth'),
  }
}

async function probeOperation(origin: string, key: string, declared: Json): Promise<ProbedOperation> {
  const [method, path] = splitKey(key)
  const templatePath = fillPath(path, (name) => `{${name}}`)
  const bare = await visit(origin, examplePath(path, declared), { method })
  const template = await visit(origin, templatePath, { method })
  const header = bare.kind === 'answer' ? (bare.headers.get('payment-required') ?? '') : ''
  const challenge = readObject(Buffer.from(header, 'base64').toString('utf8'))
  return { name: `${method} ${path}`, declared, bare, template, challenge }
}

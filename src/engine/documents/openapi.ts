import type { Catalog, Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { addressOf, placedDocuments } from './directory.ts'
import { defineDocument, type Facts, packJson } from './document.ts'
import { listedRoutes } from './listing.ts'
import { openapiComponents } from './openapi-components.ts'
import { DISCOVERY, documentPaths, openapiOperation } from './openapi-operation.ts'
import { howToPay, SANDBOX } from './wording.ts'

/** The OpenAPI 3.1.0 description of everything that is served: the document the others defer to. */
export const openapi = defineDocument('openapi', (catalog, facts) => {
  const routes = listedRoutes(catalog)
  const documents = placedDocuments(catalog, facts.baseUrl)
  const paths = [
    ...routes.map((route) => [route.path, { get: openapiOperation(catalog, facts, route) }] as const),
    ...documents.flatMap(documentPaths),
  ]
  return packJson({
    openapi: '3.1.0',
    info: info(catalog, facts),
    servers: [{ url: facts.baseUrl }],
    tags: tags(catalog, routes, documents.length),
    ...extensions(catalog, facts),
    paths: Object.fromEntries(paths),
    components: openapiComponents(facts.protocols),
  })
})

/** What registries of paid services read at the root: those of MPP the first, AgentCash and x402scan the others. */
function extensions(catalog: Catalog, { baseUrl }: Facts): JsonObject {
  const { tags: words, ownershipProofs } = catalog.service
  const llms = addressOf('llms', catalog, baseUrl)
  const proofs = ownershipProofs.length === 0 ? undefined : { ownershipProofs }
  return compact({
    'x-service-info': compact({
      categories: words.length === 0 ? undefined : words,
      docs: compact({
        homepage: baseUrl,
        apiReference: addressOf('docs', catalog, baseUrl) ?? addressOf('openapi', catalog, baseUrl),
        llms,
      }),
    }),
    'x-agentcash-guidance': llms === undefined ? undefined : { llmsTxtUrl: llms },
    'x-agentcash-provenance': proofs,
    // The older name, which x402scan still reads.
    'x-discovery': proofs,
  })
}

function info(catalog: Catalog, facts: Facts): JsonObject {
  const { name, version, description, contact, guidance, license } = catalog.service
  return compact({
    title: facts.sandbox ? `${name} (sandbox)` : name,
    version,
    description: facts.sandbox ? `${SANDBOX}\n\n${description}` : description,
    contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
    license: license === undefined ? undefined : compact({ ...license }),
    'x-guidance': guidance ?? howToPay(catalog, facts).join('\n'),
  })
}

function tags({ categories }: Catalog, routes: readonly Route[], documents: number): JsonObject[] {
  const used = new Set(routes.flatMap(({ operation }) => operation.category ?? []))
  const named = [...used].map((name) => ({ name, description: categories[name] ?? name }))
  if (documents === 0 || used.has(DISCOVERY)) return named
  return [...named, { name: DISCOVERY, description: 'Documents about the service itself' }]
}

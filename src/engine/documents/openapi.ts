import type { Catalog, Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { placedDocuments } from './directory.ts'
import { defineDocument, type Facts } from './document.ts'
import { printJson } from './json-text.ts'
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
  return printJson({
    openapi: '3.1.0',
    info: info(catalog, facts),
    servers: [{ url: facts.baseUrl }],
    tags: tags(catalog, routes, documents.length),
    paths: Object.fromEntries(paths),
    components: openapiComponents(facts.protocols),
  })
})

function info(catalog: Catalog, facts: Facts): JsonObject {
  const { name, version, description, contact, guidance } = catalog.service
  return compact({
    title: facts.sandbox ? `${name} (sandbox)` : name,
    version,
    description: facts.sandbox ? `${SANDBOX}\n\n${description}` : description,
    contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
    'x-guidance': guidance ?? howToPay(catalog, facts).join('\n'),
  })
}

function tags({ categories }: Catalog, routes: readonly Route[], documents: number): JsonObject[] {
  const used = new Set(routes.flatMap(({ operation }) => operation.category ?? []))
  const named = [...used].map((name) => ({ name, description: categories[name] ?? name }))
  if (documents === 0 || used.has(DISCOVERY)) return named
  return [...named, { name: DISCOVERY, description: 'Documents about the service itself' }]
}

import { iconUrl, type Catalog, type Operation } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { sentence } from '../base/words.ts'
import { isCallable, listedRoutes } from './listed-operations.ts'
import { addressOf, defineDocument, type Facts, printJson } from './registry.ts'
import { listedServers, nickname } from './mcp-servers.ts'
import { SERVER_CARD_TYPE } from './server-card.ts'

/** Agentic Resource Discovery: what this host offers to agents now. */
export const ard = defineDocument('ard', (catalog, facts) => {
  const { name } = catalog.service
  const { baseUrl } = facts
  return printJson({
    specVersion: '1.0',
    host: compact({
      displayName: name,
      documentationUrl: addressOf('docs', catalog, baseUrl) ?? addressOf('llms', catalog, baseUrl),
      logoUrl: iconUrl(catalog.service, baseUrl),
    }),
    entries: [...whole(catalog, facts), ...servers(catalog, facts)],
  })
})

/**
 * The entry of the whole service: its card, otherwise its OpenAPI document, a type that the format allows and
 * Lighthouse warns about.
 */
function whole(catalog: Catalog, facts: Facts): JsonObject[] {
  const { service, operations } = catalog
  const card = addressOf('agent-card', catalog, facts.baseUrl)
  const openapi = addressOf('openapi', catalog, facts.baseUrl)
  const skilled = operations.filter(
    (operation) => operation.skill !== undefined && isCallable(operation, catalog, facts),
  )
  const sold = listedRoutes(catalog)
    .filter(({ kind, operation }) => kind !== 'sample' && facts.available(operation))
    .map(({ operation }) => operation)
  const isCard = card !== undefined && skilled.length > 0
  const url = isCard ? card : openapi
  if (url === undefined) return []
  return [
    compact({
      identifier: identifier(facts, isCard ? 'agent' : 'api', service.name),
      displayName: service.name,
      type: isCard ? 'application/a2a-agent-card+json' : 'application/openapi+json',
      url,
      description: sentence(service.description),
      tags: service.tags.length === 0 ? undefined : service.tags,
      capabilities: isCard ? skilled.flatMap(({ skill }) => skill ?? []) : sold.map(({ id }) => id),
      representativeQueries: queriesOf([...new Set([...sold, ...skilled])]),
    }),
  ]
}

/** The cards of MCP servers have a fixed path next to them (MCP server card extension). */
function servers(catalog: Catalog, facts: Facts): JsonObject[] {
  return listedServers(catalog, facts).flatMap(({ name, title, description, url, tools }) => {
    if (tools.length === 0) return []
    return [
      compact({
        identifier: identifier(facts, 'mcp', nickname(name)),
        displayName: title,
        type: SERVER_CARD_TYPE,
        url: `${url}/server-card`,
        description: sentence(description ?? title),
        capabilities: tools.map(({ tool }) => tool.name),
        representativeQueries: queriesOf(tools.map(({ operation }) => operation)),
      }),
    ]
  })
}

/** `urn:air:<host>:<kind>:<name>`. */
function identifier({ baseUrl }: Facts, kind: string, name: string): string {
  const word = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  return `urn:air:${new URL(baseUrl).hostname}:${kind}:${word || 'service'}`
}

const MOST_QUERIES = 5

/** Up to five queries, one of each category in turn. None is made up: fewer than two are omitted. */
function queriesOf(operations: readonly Operation[]): string[] | undefined {
  const categories = [...new Set(operations.map(({ category }) => category))]
  const asked = categories.map((each) =>
    inTurn(operations.filter(({ category }) => category === each).map(({ queries }) => queries)),
  )
  const chosen = [...new Set(inTurn(asked))].slice(0, MOST_QUERIES)
  return chosen.length < 2 ? undefined : chosen
}

/** The first item of each list, then the second of each, and so on. */
function inTurn(lists: readonly (readonly string[])[]): string[] {
  const rounds = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: rounds }, (_, round) => lists.flatMap((list) => list[round] ?? [])).flat()
}

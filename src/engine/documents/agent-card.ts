import { iconUrl, usesTestNetworks, type Catalog, type Operation } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { findAnyNetwork } from '../base/networks.ts'
import { joinSentences, sentence } from '../base/words.ts'
import { isCallable, usualOffers } from './listed-operations.ts'
import { type OperationView, UNAVAILABLE, viewRoute, viewTool } from './operation-view.ts'
import { moneyNotice } from './payment-guide.ts'
import { addressOf, defineDocument, type Facts, printJson } from './registry.ts'

/**
 * Name of a transport that no A2A client speaks. Its two places make clients report that: without
 * `supportedInterfaces` clients of version 1, and without `preferredTransport` clients of 0.3, assume JSON-RPC and
 * post it to `/`.
 */
const BINDING = 'HTTP+X402'

/** Version of the card’s layout. */
const LAYOUT = '1.0'

const JSON_MODE = ['application/json']

/** Describes the service and its skills: a pointer to plain HTTP, in the layout of A2A 0.3 with the members of 1.0. */
export const agentCard = defineDocument('agent-card', (catalog, facts) => {
  const { name, description, provider, cardVersion } = catalog.service
  const { baseUrl } = facts
  const notice = moneyNotice(catalog, facts)
  return printJson(
    compact({
      protocolVersion: LAYOUT,
      name,
      description: joinSentences(notice, sentence(description)),
      url: baseUrl,
      preferredTransport: BINDING,
      supportedInterfaces: [{ url: baseUrl, protocolBinding: BINDING, protocolVersion: LAYOUT }],
      additionalInterfaces: interfaces(catalog, facts),
      provider,
      iconUrl: iconUrl(catalog.service, baseUrl),
      version: cardVersion,
      documentationUrl: addressOf('llms', catalog, baseUrl),
      capabilities: { streaming: false, pushNotifications: false },
      defaultInputModes: JSON_MODE,
      defaultOutputModes: JSON_MODE,
      skills: skills(catalog, facts),
      payments: payments(catalog, facts),
    }),
  )
})

function interfaces({ servers }: Catalog, { baseUrl, mcpServers }: Facts): JsonObject[] {
  const companions = [...mcpServers].flatMap(([name, url]) => {
    const server = servers[name]
    if (server === undefined) return []
    return [{ transport: 'MCP', url, description: sentence(server.description ?? server.title) }]
  })
  const http =
    'A request with a payment for each call; methods, prices and parameters are in the OpenAPI document.'
  return [{ transport: 'HTTP', url: baseUrl, description: http }, ...companions]
}

/** Every skill of the catalog, with whether it can be used now. */
function skills(catalog: Catalog, facts: Facts): JsonObject[] {
  return catalog.operations.flatMap((operation) => {
    const { skill: id, category, body, response } = operation
    const views = viewsOf(catalog, facts, operation)
    const [view] = views
    if (id === undefined || view === undefined) return []
    const calls = isCallable(operation, catalog, facts) ? views.map(({ call }) => call) : []
    return [
      compact({
        id,
        name: view.title,
        description: describe(view, calls),
        tags: [...new Set([...(category === undefined ? [] : [category]), ...facts.protocols])],
        examples: operation.queries.length === 0 ? undefined : operation.queries,
        inputModes: body === undefined ? JSON_MODE : [body.mediaType],
        outputModes: response.mediaType === undefined ? JSON_MODE : [response.mediaType],
        available: calls.length > 0,
      }),
    ]
  })
}

function describe(view: OperationView, calls: readonly string[]): string {
  const words = joinSentences(view.promise, view.deprecation, view.useWhen)
  if (calls.length === 0) return joinSentences(words, UNAVAILABLE)
  return joinSentences(words, view.cost, view.chargedFirst, calls.join(' or '))
}

/** The operation over HTTP, as a tool, or both; a tool of a server that is not served only where it is nothing else. */
function viewsOf(catalog: Catalog, facts: Facts, operation: Operation): OperationView[] {
  const { tool, parameters } = operation
  const route = catalog.routes.find((each) => each.operation === operation && each.full === undefined)
  const url = tool && facts.mcpServers.get(tool.server)
  return [
    ...(route === undefined ? [] : [viewRoute(catalog, facts, route)]),
    ...(tool === undefined || (route !== undefined && url === undefined)
      ? []
      : [viewTool(catalog, facts, { operation, tool, parameters, url: url ?? '' })]),
  ]
}

/** The preferred x402 offers; undefined when x402 is not offered. */
function payments(catalog: Catalog, facts: Facts): JsonObject | undefined {
  const [offer] = usualOffers(catalog, facts)
  const { network, asset } = offer ?? {}
  if (typeof network !== 'string' || typeof asset !== 'string') return undefined
  const testnet = usesTestNetworks(catalog.payments) ? true : undefined
  const symbol = findAnyNetwork(network)?.token.symbol
  return compact({
    protocol: 'x402',
    version: 2,
    network,
    asset: symbol ?? asset,
    assetAddress: asset,
    testnet,
  })
}

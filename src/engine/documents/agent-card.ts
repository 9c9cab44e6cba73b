import { iconUrl, type Catalog, type Operation } from '../catalog/catalog.ts'
import { ruleNote, spellPrice } from '../catalog/price/text.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { findNetwork } from '../base/networks.ts'
import { isCallable, usualOffers } from './listing.ts'
import { addressOf, defineDocument, type Facts, printJson } from './registry.ts'
import { CHARGED_FIRST, SANDBOX, sentence, useWhen } from './wording.ts'

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
  const { baseUrl, sandbox } = facts
  return printJson(
    compact({
      protocolVersion: LAYOUT,
      name,
      description: sandbox ? `${SANDBOX} ${sentence(description)}` : sentence(description),
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
    const { skill: id, category } = operation
    if (id === undefined) return []
    const where = isCallable(operation, catalog, facts) ? places(catalog, facts, operation) : []
    return [
      compact({
        id,
        name: id.charAt(0).toUpperCase() + id.slice(1).replaceAll('-', ' '),
        description: describe(operation, where),
        tags: [...new Set([...(category === undefined ? [] : [category]), ...facts.protocols])],
        examples: operation.queries.length === 0 ? undefined : operation.queries,
        inputModes: operation.body === undefined ? JSON_MODE : [operation.body.mediaType],
        outputModes: operation.response.mediaType === undefined ? JSON_MODE : [operation.response.mediaType],
        available: where.length > 0,
      }),
    ]
  })
}

function describe(operation: Operation, where: readonly string[]): string {
  const { summary, price, settle } = operation
  const words = [sentence(summary)]
  if (operation.useWhen !== undefined) words.push(useWhen(operation.useWhen))
  if (where.length === 0) return [...words, 'Not available now.'].join(' ')
  words.push(
    price === undefined ? 'Free.' : `Price: ${spellPrice(price)} USD per call${ruleNote(price)}.`,
    ...(settle === 'upfront' ? [`${CHARGED_FIRST}.`] : []),
    where.join(' or '),
  )
  return words.join(' ')
}

/** How an operation is called: over HTTP, as a tool, or both. */
function places({ routes }: Catalog, { baseUrl, mcpServers }: Facts, operation: Operation): string[] {
  const { tool } = operation
  const route = routes.find((each) => each.operation === operation && each.full === undefined)
  const server = tool === undefined ? undefined : mcpServers.get(tool.server)
  return [
    ...(route === undefined ? [] : [`${operation.method} ${baseUrl}${route.path}`]),
    ...(tool === undefined || server === undefined ? [] : [`MCP tool ${tool.name} at ${server}`]),
  ]
}

/** The preferred x402 offers; undefined when x402 is not offered. */
function payments(catalog: Catalog, facts: Facts): JsonObject | undefined {
  const [offer] = usualOffers(catalog, facts)
  const { network, asset } = offer ?? {}
  if (typeof network !== 'string' || typeof asset !== 'string') return undefined
  const symbol = findNetwork(network)?.token.symbol
  return compact({ protocol: 'x402', version: 2, network, asset: symbol ?? asset, assetAddress: asset })
}

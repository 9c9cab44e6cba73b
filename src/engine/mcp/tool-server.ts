import type { Binding, Catalog, Operation, Tool, ToolEndpoint } from '../catalog/catalog.ts'
import { inputSchema, toArgument } from '../catalog/parameter.ts'
import { compileArguments, type Validated } from '../catalog/validator.ts'
import type { Facts } from '../documents/registry.ts'
import { identifyServer, type ServerIdentity } from '../documents/servers.ts'
import { sentence, useWhen } from '../documents/copy.ts'
import { compact, isJsonObject, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import type { Challenge, Protocol } from '../protocols/protocol.ts'
import type { ServedOperation } from '../purchase/execution.ts'

/** One tool with all that answers its calls. */
export interface ServedTool {
  readonly endpoint: ToolEndpoint
  readonly served: ServedOperation
  readonly check: (given: unknown) => Validated
  /** One for each protocol it can be paid with; none for what is free. */
  readonly challenges: readonly Challenge[]
}

/** One companion server: what it lists, and what it answers. */
export interface ToolServer {
  readonly identity: ServerIdentity
  readonly description: string | undefined
  /** Of its endpoint. */
  readonly url: string
  /** By name; those that cannot be called now too, so that callers learn why. */
  readonly tools: ReadonlyMap<string, ServedTool>
  /** What can be called, in the order of the catalog. */
  readonly listed: readonly ToolDescription[]
  readonly protocols: readonly Protocol[]
  /** CAIP-2 names of the chains the catalog takes money on. */
  readonly networks: readonly string[]
}

interface ToolServerSettings {
  readonly catalog: Catalog
  readonly facts: Facts
  readonly protocols: readonly Protocol[]
  readonly served: (operation: Operation) => ServedOperation
}

/** The companion servers of a catalog by name, made once a revision. */
export function createToolServers(settings: ToolServerSettings): ReadonlyMap<string, ToolServer> {
  const { catalog, facts, protocols } = settings
  return new Map(
    Object.entries(catalog.servers).flatMap(([name, { description }]): [string, ToolServer][] => {
      const url = facts.mcpServers.get(name)
      if (url === undefined) return []
      const tools = catalog.operations.flatMap((operation) => {
        const { tool } = operation
        return tool?.server === name ? [serveTool(operation, tool, url, settings)] : []
      })
      const ready = tools.filter(({ served }) => served.readiness === 'ready')
      const server: ToolServer = {
        identity: identifyServer(catalog, facts, name),
        description,
        url,
        tools: new Map(tools.map((each) => [each.endpoint.tool.name, each])),
        listed: ready.map(({ endpoint, served }) => describeTool(endpoint, served, protocols)),
        protocols,
        networks: catalog.payments.x402?.networks ?? [],
      }
      return [[name, server]]
    }),
  )
}

function serveTool(
  operation: Operation,
  tool: Tool,
  url: string,
  { catalog, protocols, served }: ToolServerSettings,
): ServedTool {
  const route = catalog.routes.find((each) => each.operation === operation && each.kind !== 'sample')
  const parameters = route?.parameters ?? operation.parameters
  const endpoint: ToolEndpoint = {
    kind: 'tool',
    operation,
    tool,
    path: route?.path ?? `${tool.server}.${tool.name}`,
    summary: operation.summary,
    parameters,
    url,
  }
  return {
    endpoint,
    served: served(operation),
    check: compileArguments({
      operation,
      parameters,
      bindings: route?.bindings ?? bindingsOf(operation, catalog),
    }),
    challenges: protocols.flatMap((protocol) => protocol.challenge(endpoint) ?? []),
  }
}

/** Of a tool without a route: what it does not take has the default of the first declaration of the handler. */
function bindingsOf({ handler, parameters }: Operation, { operations }: Catalog): readonly Binding[] {
  const own = new Set(parameters.map(({ name }) => name))
  const taken = operations.find((each) => each.handler === handler)?.parameters ?? []
  return [
    ...parameters.map(({ name }): Binding => ({ kind: 'parameter', argument: name, parameter: name })),
    ...taken.flatMap((parameter): Binding[] => {
      const { name, default: value } = parameter
      if (own.has(name) || value === undefined) return []
      return [{ kind: 'fixed', argument: name, value: toArgument(parameter, value) }]
    }),
  ]
}

/** One entry of `tools/list`. */
export interface ToolDescription {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations: JsonObject
  readonly _meta?: JsonObject
}

/** What a model and its client read of a tool before they call it. */
function describeTool(
  endpoint: ToolEndpoint,
  served: ServedOperation,
  protocols: readonly Protocol[],
): ToolDescription {
  const { operation, tool, parameters } = endpoint
  const { price } = operation
  return {
    name: tool.name,
    description: [
      sentence(operation.summary),
      ...(operation.useWhen === undefined ? [] : [useWhen(operation.useWhen)]),
      ...(operation.description === undefined ? [] : [sentence(operation.description)]),
      costOf(endpoint, protocols),
    ].join(' '),
    inputSchema: inputSchema(parameters, operation.body),
    ...(operation.responseSchema === undefined ? {} : { outputSchema: outline(operation.responseSchema) }),
    annotations: annotationsOf(endpoint, served),
    // Read by the client of Cloudflare's agents, which tells its model.
    ...(price === undefined
      ? {}
      : {
          _meta: { 'agents-x402/paymentRequired': true, 'agents-x402/priceUSD': Number(formatPrice(price)) },
        }),
  }
}

/**
 * The members of an answer and what they mean, one level deep: a list of tools is read before every task, and clients
 * refuse an answer that breaks a promise, although it was paid for.
 */
function outline({ properties }: JsonObject): JsonObject {
  const members = Object.entries(isJsonObject(properties) ? properties : {}).map(([name, member]) => {
    const { type, description } = isJsonObject(member) ? member : {}
    return [name, compact({ type, description })] as const
  })
  return { type: 'object', properties: Object.fromEntries(members) }
}

function costOf(
  { operation: { price, settle }, tool }: ToolEndpoint,
  protocols: readonly Protocol[],
): string {
  if (price === undefined)
    return tool.requires === 'signer' ? 'Free; needs a sign-in-with-x proof of your wallet.' : 'Free.'
  const ways = protocols.map(({ name }) => (name === 'mpp' ? 'MPP' : name)).join(' or ')
  const first = settle === 'upfront' ? ', charged before the work' : ''
  return `Costs ${formatPrice(price)} USD per call${ways === '' ? '' : `, paid by ${ways}`}${first}.`
}

/** Hints in MCP's words: by nature a tool reads, unless its handler stores; storing replaces nothing. */
function annotationsOf({ operation, tool }: ToolEndpoint, { store }: ServedOperation): JsonObject {
  const { readOnly, destructive, idempotent, openWorld } = tool.annotations
  const { method } = operation
  const reads = readOnly ?? (store === undefined && method === 'GET')
  return compact({
    title: operation.summary,
    readOnlyHint: reads,
    destructiveHint: destructive ?? (method !== 'GET' && method !== 'POST'),
    idempotentHint: idempotent ?? (reads || method === 'PUT' || method === 'DELETE'),
    openWorldHint: openWorld ?? operation.sources.length > 0,
  })
}

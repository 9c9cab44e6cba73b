import type { Binding, Catalog, Operation, Tool, ToolEndpoint } from '../catalog/catalog.ts'
import { inputSchema } from '../catalog/input-schema.ts'
import { toArgument, compileArguments, type Validated } from '../catalog/validator.ts'
import { highestOf } from '../catalog/price/price.ts'
import type { Facts } from '../documents/registry.ts'
import { desktopPayment } from '../documents/mcp-server-page.ts'
import {
  commonServerUrl,
  identifyCommonServer,
  identifyServer,
  type ServerIdentity,
} from '../documents/mcp-servers.ts'
import { type OperationView, viewTool } from '../documents/operation-view.ts'
import { joinSentences } from '../base/words.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { formatPrice, type Micros } from '../base/money.ts'
import { challengesOf } from '../payment/endpoint-challenges.ts'
import type { Challenge } from '../payment/challenge.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { ServedOperation } from '../purchase/execution.ts'
import { outputSchema } from './output-schema.ts'

/** One tool with all that answers its calls. */
export interface ServedTool {
  readonly endpoint: ToolEndpoint
  readonly served: ServedOperation
  readonly check: (given: unknown) => Validated
  /** One for each protocol it can be paid with, by the amount of a call. */
  readonly challengesOf: (amount: Micros) => ReadonlyMap<string, Challenge>
}

/** One MCP server: its tools and its answers. */
export interface ToolServer {
  readonly identity: ServerIdentity
  /** What it is for, and how to pay. */
  readonly instructions: string | undefined
  /** URL of its endpoint. */
  readonly url: string
  /** By name, including unavailable tools, so that callers learn why. */
  readonly tools: ReadonlyMap<string, ServedTool>
  /** The callable tools, in the order of the catalog. */
  readonly listed: readonly ToolDescription[]
  readonly protocols: readonly Protocol[]
  /** CAIP-2 ids of the networks that the catalog accepts. */
  readonly networks: readonly string[]
  /** Largest request in bytes: enough for the arguments and body of each tool. */
  readonly largestMessage: number
}

interface ToolServerSettings {
  readonly catalog: Catalog
  readonly facts: Facts
  readonly protocols: readonly Protocol[]
  readonly served: (operation: Operation) => ServedOperation
}

/** Creates the MCP servers of a catalog by name, once per revision. */
export function createToolServers(settings: ToolServerSettings): ReadonlyMap<string, ToolServer> {
  const { catalog, facts } = settings
  return new Map(
    Object.entries(catalog.servers).flatMap(([name, { description }]): [string, ToolServer][] => {
      const url = facts.mcpServers.get(name)
      if (url === undefined) return []
      const tools = catalog.operations.flatMap((operation) => {
        const { tool } = operation
        return tool?.server === name ? [serveTool(operation, tool, url, settings)] : []
      })
      const named = new Map(tools.map((each) => [each.endpoint.tool.name, each]))
      const identity = identifyServer(catalog, facts, name)
      const listed = tools
        .filter(isReady)
        .map(({ endpoint, served }) => describeTool(endpoint, served, viewTool(catalog, facts, endpoint)))
      return [[name, toolServer(settings, { identity, description, url, tools: named, listed })]]
    }),
  )
}

/**
 * The server with all tools of the others; undefined when there are none. Of two tools of one name, the second gets the
 * name of its server too.
 */
export function createCommonServer(
  settings: ToolServerSettings,
  servers: ReadonlyMap<string, ToolServer>,
): ToolServer | undefined {
  const { catalog, facts } = settings
  if (servers.size === 0) return undefined
  const tools = new Map<string, ServedTool>()
  const listed: ToolDescription[] = []
  for (const [server, own] of servers) {
    const nameHere = (name: string): string => (tools.has(name) ? `${server}_${name}` : name)
    const names = new Map(Array.from(own.tools.keys(), (name) => [name, nameHere(name)]))
    for (const [name, tool] of own.tools) tools.set(names.get(name) ?? name, tool)
    listed.push(...own.listed.map((each) => ({ ...each, name: names.get(each.name) ?? each.name })))
  }
  const { description } = catalog.service
  const identity = identifyCommonServer(catalog, facts)
  return toolServer(settings, { identity, description, url: commonServerUrl(facts), tools, listed })
}

interface ToolServerParts extends Pick<ToolServer, 'identity' | 'url' | 'tools' | 'listed'> {
  readonly description: string | undefined
}

function toolServer(
  { catalog, facts, protocols }: ToolServerSettings,
  { description, ...parts }: ToolServerParts,
): ToolServer {
  const tools = [...parts.tools.values()]
  return {
    ...parts,
    instructions: instructionsOf(description, tools.filter(isReady), facts),
    protocols,
    networks: catalog.payments.x402?.networks ?? [],
    largestMessage: ARGUMENT_BYTES + Math.max(0, ...tools.map(bodyBytes)),
  }
}

function isReady({ served }: ServedTool): boolean {
  return served.readiness === 'ready'
}

/** Limit of the arguments, which are texts of some thousand characters and a payment. */
const ARGUMENT_BYTES = 262_144

/** A body in JSON: as base64, or escaped, so that two bytes may become six. */
function bodyBytes({ endpoint: { operation } }: ServedTool): number {
  const { kind, maxSize = 0 } = operation.body ?? {}
  return kind === 'bytes' ? Math.ceil(maxSize / 3) * 4 : maxSize * 3
}

/** Instructions for the model, sent when it connects. */
function instructionsOf(
  description: string | undefined,
  tools: readonly ServedTool[],
  { baseUrl }: Facts,
): string | undefined {
  const isSold = tools.some(({ served }) => served.operation.price !== undefined)
  const paying = `Most calls cost what their description says. A call without a payment runs nothing, costs nothing and returns how to pay. ${desktopPayment(baseUrl)}`
  const sentences = [description, isSold ? paying : undefined].filter((each) => each !== undefined)
  return sentences.length === 0 ? undefined : sentences.join(' ')
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
    challengesOf: challengesOf(endpoint, protocols),
  }
}

/** The bindings of a tool without a route: omitted arguments have the default of the handler's first declaration. */
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
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations: JsonObject
  readonly _meta?: JsonObject
}

/** What a model and its client read about a tool before a call. */
function describeTool(endpoint: ToolEndpoint, served: ServedOperation, view: OperationView): ToolDescription {
  const { operation, parameters } = endpoint
  const { price } = operation
  const largest = price === undefined ? undefined : highestOf(price)
  const output = outputSchema(operation)
  return {
    name: view.name,
    title: view.title,
    description: joinSentences(
      view.promise,
      view.deprecation,
      view.useWhen,
      view.description,
      view.cost,
      view.chargedFirst,
    ),
    inputSchema: inputSchema(parameters, operation.body),
    ...(output === undefined ? {} : { outputSchema: output }),
    annotations: annotationsOf(endpoint, served, view),
    // Read by the client of Cloudflare's agents, which passes it on to its model.
    ...(largest === undefined
      ? {}
      : {
          _meta: {
            'agents-x402/paymentRequired': true,
            'agents-x402/priceUSD': Number(formatPrice(largest)),
          },
        }),
  }
}

/** Hints in the terms of MCP: a tool is read-only unless its handler stores, which never overwrites. */
function annotationsOf(
  { operation, tool }: ToolEndpoint,
  { store }: ServedOperation,
  { title }: OperationView,
): JsonObject {
  const { readOnly, destructive, idempotent, openWorld } = tool.annotations
  const { method } = operation
  const reads = readOnly ?? (store === undefined && method === 'GET')
  return compact({
    title,
    // A payment is an effect, too.
    readOnlyHint: reads && operation.price === undefined,
    destructiveHint: destructive ?? (method !== 'GET' && method !== 'POST'),
    idempotentHint: idempotent ?? (reads || method === 'PUT' || method === 'DELETE'),
    openWorldHint: openWorld ?? operation.sources.length > 0,
  })
}

import type { Catalog } from '../catalog/catalog.ts'
import { toArgument } from '../catalog/parameter.ts'
import { type JsonObject, compact } from '../json.ts'
import { isLoopback } from '../origin.ts'
import { sentence, CHARGED_FIRST, offeredNetworks, spellDuration, useWhen } from './copy.ts'
import { type ListedTool, listedTools, toolPrice } from './listing.ts'
import { iconUrl, frame, PAGE_HEADERS, readPage } from './page.ts'
import { argumentRow } from './parameters.ts'
import { addressOf, type Facts, placedDocuments, PAGE_TYPE, printJson } from './registry.ts'
import type { TemplateContext } from './template.ts'

/** Where the page of a companion server stands: under the documentation, if that is served. */
export function serverPagePath(catalog: Catalog, name: string): string | undefined {
  const docs = placedDocuments(catalog, '').find((placed) => placed.name === 'docs')?.paths[0]
  return docs === undefined ? undefined : `${docs === '/' ? '' : docs}/servers/${name}`
}

/**
 * Where the card of a server stands here. Its address is that of the endpoint with /server-card behind it: on a host of
 * the server's own, what is asked for there is answered with this.
 */
export function serverCardPath(name: string): string {
  return `/mcp/${name}/server-card`
}

/** Where a tool stands on the page of its server. */
export function toolAnchor(name: string): string {
  return `tool.${name}`
}

/** A companion MCP server that is served, with those of its tools that can be called now. */
export interface ListedServer {
  /** Its name in the catalog. */
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  /** Address of its endpoint. */
  readonly url: string
  /** In the order of the catalog. */
  readonly tools: readonly ListedTool[]
}

/** Every companion server that is served, in the order of the catalog. */
export function listedServers(catalog: Catalog, facts: Facts): ListedServer[] {
  const tools = listedTools(catalog, facts)
  return Object.entries(catalog.servers).flatMap(([name, server]) => {
    const url = facts.mcpServers.get(name)
    if (url === undefined) return []
    return [{ ...server, name, url, tools: tools.filter(({ tool }) => tool.server === name) }]
  })
}

/** Who a companion server is: the same in its card, in the registry and in what it says of itself when asked. */
export interface ServerIdentity {
  /** Reverse DNS name of the service’s host, a slash, and the name in the catalog: `com.example/game`. */
  readonly name: string
  readonly title: string
  readonly version: string
  /** At most 100 characters: the registry and the card take no more. */
  readonly description: string
  readonly websiteUrl: string | undefined
  readonly icons: readonly JsonObject[] | undefined
}

const LONGEST = 100

export function identifyServer(catalog: Catalog, facts: Facts, name: string): ServerIdentity {
  const { title, description } = catalog.servers[name] ?? { title: name, description: undefined }
  const { baseUrl, sandbox } = facts
  const page = serverPagePath(catalog, name)
  const icon = iconUrl(catalog, baseUrl)
  return {
    name: `${reverse(baseUrl)}/${nickname(name)}`,
    title: shorten(sandbox ? `${title} (sandbox)` : title),
    version: catalog.service.version,
    description: shorten(sentence(description ?? title)),
    websiteUrl: page === undefined ? addressOf('llms', catalog, baseUrl) : baseUrl + page,
    icons: icon === undefined ? undefined : [{ src: icon, mimeType: 'image/svg+xml', sizes: ['any'] }],
  }
}

/** A server’s last name: in its identity, and in the URN by which a catalog of resources knows it. */
export function nickname(name: string): string {
  return name.replaceAll('_', '-')
}

/** The registry lets publish under this name who holds the key that the host shows under /.well-known/. */
function reverse(baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return isLoopback(baseUrl) || hostname.includes(':')
    ? 'localhost'
    : hostname.split('.').toReversed().join('.')
}

/** Whole words, with a mark where some are missing. */
function shorten(text: string): string {
  const points = Array.from(text)
  if (points.length <= LONGEST) return text
  const kept = points.slice(0, LONGEST - 1).join('')
  return `${kept.replace(/\s+\S*$/, '')}…`
}

/** What a person types or pastes so that a client knows a server. */
interface Setup {
  readonly client: string
  readonly where: string
  readonly language: 'sh' | 'json'
  readonly text: string
}

/** For each client whose form is its own; all of them speak streamable HTTP, one through a bridge. */
function setupsFor(name: string, url: string): Setup[] {
  return [
    {
      client: 'Claude Code',
      where: 'in a terminal',
      language: 'sh',
      text: `claude mcp add --transport http ${name} ${url}`,
    },
    {
      client: 'Claude Code, for a whole project',
      where: '.mcp.json',
      language: 'json',
      text: pretty({ mcpServers: { [name]: { type: 'http', url } } }),
    },
    {
      client: 'Claude Desktop',
      where: 'claude_desktop_config.json, or add the address under Settings, Connectors',
      language: 'json',
      text: pretty({ mcpServers: { [name]: { command: 'npx', args: ['-y', 'mcp-remote', url] } } }),
    },
    {
      client: 'Cursor',
      where: '.cursor/mcp.json',
      language: 'json',
      text: pretty({ mcpServers: { [name]: { url } } }),
    },
    {
      client: 'VS Code',
      where: '.vscode/mcp.json',
      language: 'json',
      text: pretty({ servers: { [name]: { type: 'http', url } } }),
    },
  ]
}

function pretty(value: JsonObject): string {
  return JSON.stringify(value, undefined, 2)
}

/** How a call of a tool is paid for, one step a line. */
export function howToPayTools(catalog: Catalog, facts: Facts): string[] {
  const lines = [
    'Call the tool without a payment: the result is an error that lists what to pay, and costs nothing. Arguments are checked first, so what is offered can be had.',
  ]
  if (facts.protocols.includes('x402')) {
    lines.push(
      `By x402: "structuredContent" is what PAYMENT-REQUIRED carries over HTTP. Choose one of its "accepts"${offeredNetworks(catalog, facts)}, sign it, and call again with the payment (a JSON object, not base64) under "x402/payment" in params._meta. The receipt is under "x402/payment-response" in the _meta of the result.`,
    )
  }
  if (facts.protocols.includes('mpp')) {
    lines.push(
      'By MPP: the challenges are under "org.paymentauth/payment-required" in the _meta of the result, the credential goes under "org.paymentauth/credential" in params._meta, and the receipt comes under "org.paymentauth/receipt".',
    )
  }
  lines.push('Answer lost? Send the same payment again, not a new one: it is charged once at most.')
  return lines
}

/** The same in a line, for guides that hold everything; none where no tool is served. */
export function toolPayment({ mcpServers, protocols }: Facts): string[] {
  if (mcpServers.size === 0 || !protocols.includes('x402')) return []
  return [
    'Tools of MCP servers carry the payment (a JSON object, not base64) under "x402/payment" in params._meta; what to pay is the structuredContent of a call without one. Their lists are arrays.',
  ]
}

/** Libraries that do this by themselves, by the protocol they pay with. */
export function payingClients({ protocols }: Facts): string[] {
  return [
    ...(protocols.includes('x402')
      ? ['withX402Client of the npm package agents (Cloudflare) pays by x402 around an MCP client.']
      : []),
    ...(protocols.includes('mpp')
      ? ['McpClient.wrap of mppx/mcp/client pays by MPP around an MCP client.']
      : []),
    'Desktop clients and editors do not pay by themselves: they list every tool and call the free ones.',
  ]
}

/** Pays for one `call` at `url`, a URL object, with a cap on what it spends: any MCP client, and a wallet of x402. */
export const TOOL_CLIENT = [
  "import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'",
  "import { x402Client } from '@x402/core/client'",
  "import { ExactEvmScheme } from '@x402/evm/exact/client'",
  "import { privateKeyToAccount } from 'viem/accounts'",
  'const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY)',
  "const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account))",
  "wallet.setSpendControls({ maxAmountPerPayment: '$1' })",
  "const client = new Client({ name: 'buyer', version: '1.0.0' })",
  'await client.connect(new StreamableHTTPClientTransport(url))',
  'const { structuredContent: offer } = await client.callTool(call)',
  'const payment = await wallet.createPaymentPayload(offer)',
  "console.log(await client.callTool({ ...call, _meta: { 'x402/payment': payment } }))",
].join('\n')

/** All there is to say of one companion server, before it is set as a page or as Markdown. */
export function serverManual(catalog: Catalog, server: ListedServer): TemplateContext {
  const { name, title, description, url, tools } = server
  return {
    title,
    description: description === undefined ? '' : sentence(description),
    url,
    place: serverPagePath(catalog, name) ?? '',
    setups: setupsFor(name, url).map((setup) => ({ ...setup })),
    tools: tools.map(toolManual),
  }
}

const IDENTITY = {
  payer: 'It knows only what belongs to the wallet that pays.',
  signer:
    'It knows only what belongs to the wallet that has signed a sign-in-with-x message, under "sign-in-with-x" in params._meta. Without one the result is an error that says what to sign.',
} as const

function toolManual(listed: ListedTool): TemplateContext {
  const { tool, operation, route, parameters } = listed
  const { summary, useWhen: when, description, settle, price, timeout } = operation
  return {
    anchor: toolAnchor(tool.name),
    name: tool.name,
    price: toolPrice(listed) ?? '',
    summary: sentence(summary),
    useWhen: when === undefined ? '' : useWhen(when),
    description: description === undefined ? '' : sentence(description),
    charging:
      price !== undefined && settle === 'upfront' ? sentence(`${CHARGED_FIRST}, before the work`) : '',
    identity: tool.requires === undefined ? '' : IDENTITY[tool.requires],
    parameters: parameters.map(argumentRow),
    call: pretty(exampleCall(listed)),
    route: route?.path ?? '',
    routeAnchor: route?.name ?? '',
    limit: `Answers within ${spellDuration(timeout)}.`,
  }
}

/** What `callTool` takes: what is required, and what the catalog shows. */
function exampleCall({ tool, parameters }: ListedTool): JsonObject {
  const shown = parameters.flatMap((parameter) => {
    const { name, example } = parameter
    return example === undefined ? [] : [[name, toArgument(parameter, example)] as const]
  })
  return { name: tool.name, arguments: Object.fromEntries(shown) }
}

export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'

/** Revisions of the protocol that every endpoint speaks, newest first; `server/discover` is the truth. */
export const MCP_REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

const SCHEMAS = 'https://static.modelcontextprotocol.io/schemas'

/**
 * How to connect to a companion server, for clients that have not yet (MCP server cards, SEP-2127): stands at the
 * endpoint’s address with /server-card behind it. It names no tools: those are asked for.
 */
function renderServerCard(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
  const remotes = [{ type: 'streamable-http', url, supportedProtocolVersions: MCP_REVISIONS }]
  const identity = identifyServer(catalog, facts, name)
  return printJson(compact({ $schema: `${SCHEMAS}/v1/server-card.schema.json`, ...identity, remotes }))
}

/** `server.json`: what `mcp-publisher` sends to the MCP registry, which never fetches it. */
export function renderServerJson(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
  const { icons, ...identity } = identifyServer(catalog, facts, name)
  return printJson(
    compact({
      $schema: `${SCHEMAS}/2025-12-11/server.schema.json`,
      ...identity,
      // The registry takes pictures from https alone.
      icons: facts.baseUrl.startsWith('https:') ? icons : undefined,
      remotes: [{ type: 'streamable-http', url }],
    }),
  )
}

const printServerPage = readPage('docs-server.html.hbs')

/** One companion server for people: how to connect, how to pay, and its tools. */
function renderServerPage(catalog: Catalog, facts: Facts, server: ListedServer): string {
  const { title, description, websiteUrl } = identifyServer(catalog, facts, server.name)
  return printServerPage({
    page: frame(catalog, facts, {
      title: `${title} · ${catalog.service.name}`,
      description,
      url: websiteUrl ?? '',
      style: '',
    }),
    ...serverManual(catalog, server),
    sells: server.tools.some(({ operation }) => operation.price !== undefined),
    steps: howToPayTools(catalog, facts),
    clients: payingClients(facts),
    program: facts.protocols.includes('x402') ? TOOL_CLIENT : '',
    docs: addressOf('docs', catalog, '') ?? '',
  })
}

/** A document of one companion server. */
interface ServerDocument {
  readonly path: string
  readonly type: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** The page of each companion server that is served. */
export function serverPages(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).flatMap((server) => {
    const path = serverPagePath(catalog, server.name)
    if (path === undefined) return []
    return [{ path, type: PAGE_TYPE, text: renderServerPage(catalog, facts, server), headers: PAGE_HEADERS }]
  })
}

/** The card of each. */
export function serverCards(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).map((server) => ({
    path: serverCardPath(server.name),
    type: SERVER_CARD_TYPE,
    text: renderServerCard(catalog, facts, server),
    headers: {},
  }))
}

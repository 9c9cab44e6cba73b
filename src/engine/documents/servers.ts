import { iconUrl, type Catalog } from '../catalog/catalog.ts'
import { toArgument } from '../catalog/validator.ts'
import { highestOfAll } from '../catalog/price/price.ts'
import { type JsonObject, compact } from '../base/json.ts'
import { formatShort } from '../base/money.ts'
import { isLoopback } from '../base/loopback.ts'
import { sentence, CHARGED_FIRST, offeredNetworks, spellDuration, useWhen } from './wording.ts'
import { type ListedTool, listedTools, spellTag } from './listing.ts'
import { frame, PAGE_HEADERS, readPage } from './page-frame.ts'
import { argumentRow } from './parameters.ts'
import { addressOf, docsFolder, type Facts, operationPath, PAGE_TYPE, printJson } from './registry.ts'
import type { TemplateContext } from './template.ts'

/** Path of the page of an MCP server, below the documentation if that is served. */
export function serverPagePath(catalog: Catalog, name: string): string | undefined {
  const folder = docsFolder(catalog)
  return folder === undefined ? undefined : `${folder}/servers/${name}`
}

/** Path of the card of an MCP server: that of its endpoint with `/server-card` appended, also on a host of its own. */
export function serverCardPath(name: string): string {
  return `/mcp/${name}/server-card`
}

/** Anchor of a tool on the page of its server. */
export function toolAnchor(name: string): string {
  return `tool.${name}`
}

/** A served MCP server with its callable tools. */
export interface ListedServer {
  /** Its name in the catalog. */
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  /** URL of its endpoint. */
  readonly url: string
  /** In the order of the catalog. */
  readonly tools: readonly ListedTool[]
}

/** Every served MCP server, in the order of the catalog. */
export function listedServers(catalog: Catalog, facts: Facts): ListedServer[] {
  const tools = listedTools(catalog, facts)
  return Object.entries(catalog.servers).flatMap(([name, server]) => {
    const url = facts.mcpServers.get(name)
    if (url === undefined) return []
    return [{ ...server, name, url, tools: tools.filter(({ tool }) => tool.server === name) }]
  })
}

/** Identity of an MCP server: the same in its card, in the registry and in its own answers. */
export interface ServerIdentity {
  /** Reverse DNS name of the service’s host, a slash, and the name in the catalog: `com.example/game`. */
  readonly name: string
  readonly title: string
  readonly version: string
  /** At most 100 characters, the limit of the registry and the card. */
  readonly description: string
  readonly websiteUrl: string | undefined
  readonly icons: readonly JsonObject[] | undefined
}

const LONGEST = 100
const SVG = { mimeType: 'image/svg+xml', sizes: ['any'] } as const

export function identifyServer(catalog: Catalog, facts: Facts, name: string): ServerIdentity {
  const { title, description } = catalog.servers[name] ?? { title: name, description: undefined }
  const { baseUrl, sandbox } = facts
  const page = serverPagePath(catalog, name)
  const icon = iconUrl(catalog.service, baseUrl)
  return {
    name: `${reverse(baseUrl)}/${nickname(name)}`,
    title: shorten(sandbox ? `${title} (sandbox)` : title),
    version: catalog.service.version,
    description: shorten(sentence(description ?? title)),
    websiteUrl: page === undefined ? addressOf('llms', catalog, baseUrl) : baseUrl + page,
    icons: icon === undefined ? undefined : [icon.endsWith('.svg') ? { src: icon, ...SVG } : { src: icon }],
  }
}

/** The last part of a server’s name: used in its identity, and in its URN in a resource catalog. */
export function nickname(name: string): string {
  return name.replaceAll('_', '-')
}

/** The registry accepts this name from the holder of the key that the host publishes under /.well-known/. */
function reverse(baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return isLoopback(baseUrl) || hostname.includes(':')
    ? 'localhost'
    : hostname.split('.').toReversed().join('.')
}

/** Truncates at a word, with an ellipsis. */
function shorten(text: string): string {
  const points = Array.from(text)
  if (points.length <= LONGEST) return text
  const kept = points.slice(0, LONGEST - 1).join('')
  return `${kept.replace(/\s+\S*$/, '')}…`
}

/** Text that a person types or pastes to add a server to a client. */
interface Setup {
  readonly client: string
  readonly where: string
  readonly language: 'sh' | 'json'
  readonly text: string
}

/** The setup of each client with a format of its own; all use streamable HTTP, one through a bridge. */
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

/** Instructions for a paid tool call, one step per line. */
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

/** The same in one line, for guides that hold everything; empty without tools. */
export function toolPayment({ mcpServers, protocols }: Facts): string[] {
  if (mcpServers.size === 0 || !protocols.includes('x402')) return []
  return [
    'Tools of MCP servers carry the payment (a JSON object, not base64) under "x402/payment" in params._meta; what to pay is the structuredContent of a call without one. Their lists are arrays.',
  ]
}

/** Libraries that pay automatically, by protocol. */
export function payingClients({ protocols, baseUrl }: Facts): string[] {
  return [
    ...(protocols.includes('x402')
      ? ['withX402Client of the npm package agents (Cloudflare) pays by x402 around an MCP client.']
      : []),
    ...(protocols.includes('mpp')
      ? ['McpClient.wrap of mppx/mcp/client pays by MPP around an MCP client.']
      : []),
    desktopPayment(baseUrl),
  ]
}

/** How to pay from a client that does not support payments. */
export function desktopPayment(baseUrl: string): string {
  return `Desktop clients and editors do not pay by themselves. "npx ratecard-buyer mcp ${baseUrl} --max-per-call 0.05 --max 5" is an MCP server for them that lists the same tools and pays within this budget.`
}

/**
 * A program that pays for one tool call over x402, at most the highest price of `tools`. The caller prepends its own
 * `url` (a URL object) and `call`. Empty if there is nothing to pay for.
 */
export function payingToolClient(tools: readonly ListedTool[], { protocols }: Facts): string {
  const cap = highestOfAll(tools.map(({ operation }) => operation.price))
  if (cap === undefined || !protocols.includes('x402')) return ''
  return [
    "import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'",
    "import { x402Client } from '@x402/core/client'",
    "import { ExactEvmScheme } from '@x402/evm/exact/client'",
    "import { privateKeyToAccount } from 'viem/accounts'",
    'const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY)',
    "const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account))",
    `wallet.setSpendControls({ maxAmountPerPayment: '$${formatShort(cap)}' })`,
    "const client = new Client({ name: 'buyer', version: '1.0.0' })",
    'await client.connect(new StreamableHTTPClientTransport(url))',
    'const { structuredContent: offer } = await client.callTool(call)',
    'const payment = await wallet.createPaymentPayload(offer)',
    "console.log(await client.callTool({ ...call, _meta: { 'x402/payment': payment } }))",
  ].join('\n')
}

/** The documentation of one MCP server, for its page and its Markdown. */
export function serverManual(catalog: Catalog, server: ListedServer): TemplateContext {
  const { name, title, description, url, tools } = server
  return {
    title,
    description: description === undefined ? '' : sentence(description),
    url,
    place: serverPagePath(catalog, name) ?? '',
    setups: setupsFor(name, url).map((setup) => ({ ...setup })),
    tools: tools.map((listed) => toolManual(catalog, listed)),
  }
}

const IDENTITY = {
  payer: 'It knows only what belongs to the wallet that pays.',
  signer:
    'It knows only what belongs to the wallet that has signed a sign-in-with-x message, under "sign-in-with-x" in params._meta. Without one the result is an error that says what to sign.',
} as const

function toolManual(catalog: Catalog, listed: ListedTool): TemplateContext {
  const { tool, operation, route, parameters } = listed
  const { summary, useWhen: when, description, settle, price, timeout } = operation
  return {
    anchor: toolAnchor(tool.name),
    name: tool.name,
    price: spellTag(listed.operation.price),
    summary: sentence(summary),
    useWhen: when === undefined ? '' : useWhen(when),
    description: description === undefined ? '' : sentence(description),
    charging:
      price !== undefined && settle === 'upfront' ? sentence(`${CHARGED_FIRST}, before the work`) : '',
    identity: tool.requires === undefined ? '' : IDENTITY[tool.requires],
    parameters: parameters.map(argumentRow),
    call: pretty(exampleCall(listed)),
    route: route === undefined ? '' : `${route.operation.method} ${route.path}`,
    routePage: (route && operationPath(catalog, route)) ?? '',
    limit: `Answers within ${spellDuration(timeout)}.`,
  }
}

/** Arguments for `callTool`: required ones, and those with examples. */
function exampleCall({ tool, parameters }: ListedTool): JsonObject {
  const shown = parameters.flatMap((parameter) => {
    const { name, example } = parameter
    return example === undefined ? [] : [[name, toArgument(parameter, example)] as const]
  })
  return { name: tool.name, arguments: Object.fromEntries(shown) }
}

export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'

/** Protocol revisions of every endpoint, newest first; `server/discover` is authoritative. */
export const MCP_REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

const SCHEMAS = 'https://static.modelcontextprotocol.io/schemas'

/**
 * How to connect to a companion server, for clients that have not yet (MCP server cards, SEP-2127). Served at the
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
      // The registry accepts icons over https only.
      icons: facts.baseUrl.startsWith('https:') ? icons : undefined,
      remotes: [{ type: 'streamable-http', url }],
    }),
  )
}

const printServerPage = readPage('docs-server.html.hbs')

/** The page of one MCP server: how to connect, how to pay, and its tools. */
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
    program: payingToolClient(server.tools, facts),
  })
}

/** A document of one MCP server. */
interface ServerDocument {
  readonly path: string
  readonly type: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** The pages of all served MCP servers. */
export function serverPages(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).flatMap((server) => {
    const path = serverPagePath(catalog, server.name)
    if (path === undefined) return []
    return [{ path, type: PAGE_TYPE, text: renderServerPage(catalog, facts, server), headers: PAGE_HEADERS }]
  })
}

/** The cards of all served MCP servers. */
export function serverCards(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).map((server) => ({
    path: serverCardPath(server.name),
    type: SERVER_CARD_TYPE,
    text: renderServerCard(catalog, facts, server),
    headers: {},
  }))
}

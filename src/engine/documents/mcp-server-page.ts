import type { Catalog } from '../catalog/catalog.ts'
import { toArgument } from '../catalog/validator.ts'
import type { JsonObject } from '../base/json.ts'
import { sentence } from '../base/words.ts'
import { toolProgram } from './example-programs.ts'
import type { ListedTool } from './listed-operations.ts'
import {
  identifyServer,
  type ListedServer,
  listedServers,
  type ServerDocument,
  serverPagePath,
  toolAnchor,
} from './mcp-servers.ts'
import { viewTool } from './operation-view.ts'
import { frame, PAGE_HEADERS, readPage } from './page-frame.ts'
import { offeredNetworks } from './payment-guide.ts'
import { type Facts, operationPath, PAGE_TYPE } from './registry.ts'
import { guideOf } from './site-guide.ts'
import type { TemplateContext } from './template.ts'

/** The command that adds a server to Claude Code. */
export function addCommand(name: string, url: string): string {
  return `claude mcp add --transport http ${name} ${url}`
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
      text: addCommand(name, url),
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

/** The documentation of one MCP server, for its page and its Markdown. */
export function serverManual(catalog: Catalog, facts: Facts, server: ListedServer): TemplateContext {
  const { name, title, description, url, tools } = server
  return {
    title,
    description: description === undefined ? '' : sentence(description),
    url,
    place: serverPagePath(catalog, name) ?? '',
    setups: setupsFor(name, url).map((setup) => ({ ...setup })),
    tools: tools.map((listed) => toolManual(catalog, facts, listed)),
  }
}

function toolManual(catalog: Catalog, facts: Facts, listed: ListedTool): TemplateContext {
  const { tool, route } = listed
  return {
    view: viewTool(catalog, facts, listed),
    anchor: toolAnchor(tool.name),
    call: pretty({ ...exampleCall(listed) }),
    route: route === undefined ? '' : `${route.operation.method} ${route.path}`,
    routePage: (route && operationPath(catalog, route)) ?? '',
  }
}

/** Arguments for `callTool`: required ones, and those with examples. */
export function exampleCall({ tool, parameters }: Pick<ListedTool, 'tool' | 'parameters'>): {
  readonly name: string
  readonly arguments: JsonObject
} {
  const shown = parameters.flatMap((parameter) => {
    const { name, example } = parameter
    return example === undefined ? [] : [[name, toArgument(parameter, example)] as const]
  })
  return { name: tool.name, arguments: Object.fromEntries(shown) }
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
    ...serverManual(catalog, facts, server),
    guide: guideOf(catalog, facts),
    sells: server.tools.some(({ operation }) => operation.price !== undefined),
    steps: howToPayTools(catalog, facts),
    clients: payingClients(facts),
    program: toolProgram(
      server.tools.map(({ operation }) => operation.price),
      facts.protocols,
    ),
  })
}

/** The pages of all served MCP servers. */
export function serverPages(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).flatMap((server) => {
    const path = serverPagePath(catalog, server.name)
    if (path === undefined) return []
    return [{ path, type: PAGE_TYPE, text: renderServerPage(catalog, facts, server), headers: PAGE_HEADERS }]
  })
}

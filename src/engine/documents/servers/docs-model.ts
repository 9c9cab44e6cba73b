import type { Catalog } from '../../catalog/catalog.ts'
import { toArgument } from '../../catalog/parameter.ts'
import type { JsonObject } from '../../json.ts'
import type { Facts } from '../registry.ts'
import { type ListedTool, toolPrice } from '../listing.ts'
import { argumentRow } from '../parameters.ts'
import type { TemplateContext } from '../template.ts'
import { CHARGED_FIRST, offeredNetworks, sentence, spellDuration, useWhen } from '../copy.ts'
import { type ListedServer, serverPagePath, toolAnchor } from './server.ts'

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
      text: print({ mcpServers: { [name]: { type: 'http', url } } }),
    },
    {
      client: 'Claude Desktop',
      where: 'claude_desktop_config.json, or add the address under Settings, Connectors',
      language: 'json',
      text: print({ mcpServers: { [name]: { command: 'npx', args: ['-y', 'mcp-remote', url] } } }),
    },
    {
      client: 'Cursor',
      where: '.cursor/mcp.json',
      language: 'json',
      text: print({ mcpServers: { [name]: { url } } }),
    },
    {
      client: 'VS Code',
      where: '.vscode/mcp.json',
      language: 'json',
      text: print({ servers: { [name]: { type: 'http', url } } }),
    },
  ]
}

function print(value: JsonObject): string {
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
    call: JSON.stringify(exampleCall(listed), undefined, 2),
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

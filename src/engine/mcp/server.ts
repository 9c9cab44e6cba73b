import type { IncomingHttpHeaders } from 'node:http'
import type { ServerCapabilities, StandardSchemaV1 } from '@modelcontextprotocol/server'
import { didYouMean } from '../catalog/issue.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { MCP_PATH } from '../documents/mcp-servers.ts'
import { isJsonObject, type JsonObject, parseStrictJson } from '../base/json.ts'
import type { ToolServer } from './tool-server.ts'

/** A call as it came, free of the SDK. */
interface IncomingCall {
  readonly name: string
  readonly arguments: unknown
  readonly meta: JsonObject
  /** Names of the extensions of MCP the client knows. */
  readonly extensions: ReadonlySet<string>
}

/** The result, or undefined when there is no such tool. */
export type AnswerCall = (call: IncomingCall) => Promise<JsonObject | undefined>

/** Milliseconds for which clients may keep the list: a reload changes it, and a call of what is gone is told so. */
const LIST_MS = 300_000

/** One HTTP request to a server. */
interface Message {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** Parsed; undefined without one. */
  readonly body: unknown
  /** Aborted when the client has gone away before its answer. */
  readonly signal: AbortSignal
}

/**
 * Speaks MCP over one HTTP request, in its newest revision and every older one. The SDK costs 30 MB and a good part of a
 * second, so it is loaded when somebody calls.
 */
export async function handleMessage(
  tools: ToolServer,
  answer: AnswerCall,
  { method, headers, body, signal }: Message,
  report: (fault: unknown) => void,
): Promise<Response> {
  const sdk = await import('@modelcontextprotocol/server')
  const { Server, ProtocolError, ProtocolErrorCode, createMcpHandler, CLIENT_CAPABILITIES_META_KEY } = sdk
  const { name, title, version, description, websiteUrl } = tools.identity
  const create = (): InstanceType<typeof Server> => {
    const server = new Server(
      { name, title, version, description, ...(websiteUrl === undefined ? {} : { websiteUrl }) },
      {
        capabilities: capabilitiesOf(tools),
        ...(tools.instructions === undefined ? {} : { instructions: tools.instructions }),
        cacheHints: {
          'tools/list': { ttlMs: LIST_MS, cacheScope: 'public' },
          'server/discover': { ttlMs: LIST_MS, cacheScope: 'public' },
        },
      },
    )
    server.setRequestHandler('tools/list', { params: ANYTHING }, () => ({ tools: tools.listed }))
    server.setRequestHandler('tools/call', { params: ANYTHING }, async (params, { mcpReq }) => {
      const { name, arguments: given, _meta: meta } = isJsonObject(params) ? params : {}
      const envelope: unknown = mcpReq.envelope
      const result = await answer({
        name: typeof name === 'string' ? name : '',
        arguments: given,
        meta: isJsonObject(meta) ? meta : {},
        extensions: extensionsOf(isJsonObject(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : undefined),
      })
      if (result === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, unknownTool(tools, name))
      return result
    })
    return server
  }
  // Nothing here changes under a client's eyes: no stream is kept open for it.
  const { fetch } = createMcpHandler(create, { maxSubscriptions: 0, onerror: report })
  const request = new Request(tools.url, { method, headers: headersOf(headers), signal })
  return fetch(request, body === undefined ? {} : { parsedBody: body })
}

function headersOf(incoming: IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming))
    for (const value of [values].flat()) headers.append(name, value)
  return headers
}

/** Most names that are listed. */
const MOST_NAMES = 50

function unknownTool({ tools }: ToolServer, name: unknown): string {
  const names = [...tools.keys()]
  const asked = typeof name === 'string' ? name.slice(0, 100) : ''
  const more = names.length > MOST_NAMES ? ', …' : ''
  return `there is no tool "${asked}"${didYouMean(asked, names)}; there are: ${names.slice(0, MOST_NAMES).join(', ')}${more}`
}

/** The SDK holds calls against the revision's own schema. */
const ANYTHING: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'ratecard', validate: (value) => ({ value }) },
}

function extensionsOf(capabilities: unknown): ReadonlySet<string> {
  const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : undefined
  return new Set(isJsonObject(extensions) ? Object.keys(extensions) : [])
}

function capabilitiesOf({ protocols }: ToolServer): ServerCapabilities {
  const all = protocols.map(({ tools }) => tools.capabilities)
  return {
    tools: {},
    extensions: Object.fromEntries(all.flatMap(({ extensions }) => Object.entries(extensions ?? {}))),
    experimental: Object.fromEntries(all.flatMap(({ experimental }) => Object.entries(experimental ?? {}))),
  }
}

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Hosts that requests may name: those of the service's own addresses, and this machine's own while nobody else can come. */
export function hostsOf(addresses: Iterable<string>, bound: string | undefined): ReadonlySet<string> {
  const own = Array.from(addresses, (url) => new URL(url).hostname)
  const local = bound !== undefined && (bound === '::1' || bound.startsWith('127.'))
  return new Set(local ? [...own, ...LOOPBACK] : own)
}

/** Whether a Host is one of these: a page of another site may have sent the request through a name that leads here. */
export function isServedAt(host: string, hosts: ReadonlySet<string>): boolean {
  return hosts.has(hostnameOf(`http://${host}`))
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : ''
}

export type ParsedMessage =
  | { readonly kind: 'message'; readonly message: unknown }
  /** Why it is refused, as a phrase without subject. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** The posted message, or the messages of a batch. Arguments are read as strictly as bodies of requests by HTTP. */
export function parseMessage(bytes: Buffer): ParsedMessage {
  const parsed = parseStrictJson(bytes.toString('utf8'))
  if (parsed.kind === 'fault') return parsed
  const { value } = parsed
  return { kind: 'message', message: Array.isArray(value) ? value.map(nestMeta) : nestMeta(value) }
}

/** MPP allows `_meta` next to `params` too, where MCP knows none. */
function nestMeta(message: unknown): unknown {
  if (!isJsonObject(message)) return message
  const { _meta: outer, ...rest } = message
  if (!isJsonObject(outer)) return message
  const params = isJsonObject(rest['params']) ? rest['params'] : {}
  const inner = isJsonObject(params['_meta']) ? params['_meta'] : {}
  return { ...rest, params: { ...params, _meta: { ...outer, ...inner } } }
}

/** Address of each companion server by its name: `/mcp` on a base of its own, else a path below the service's. */
export function endpointsOf(
  { servers }: Pick<Catalog, 'servers'>,
  baseUrl: string,
  bases: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.keys(servers).map((name): [string, string] => {
      const base = Object.hasOwn(bases, name) ? bases[name] : undefined
      return [name, base === undefined ? `${baseUrl}${localPath(name)}` : `${base}${MCP_PATH}`]
    }),
  )
}

function localPath(name: string): string {
  return `${MCP_PATH}/${name}`
}

/** The server a request is for. The path below the service's base is served in any case, for use on one machine. */
export function serverAt(
  endpoints: ReadonlyMap<string, string>,
  host: string,
  path: string,
): string | undefined {
  if (!path.startsWith(MCP_PATH)) return undefined
  for (const [name, url] of endpoints) {
    if (path === localPath(name)) return name
    const endpoint = new URL(url)
    if (path === endpoint.pathname && host.toLowerCase() === endpoint.host) return name
  }
  return undefined
}

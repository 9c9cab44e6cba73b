import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { isLoopback } from '../../engine/base/loopback.ts'
import { type Answer, request } from '../http-call.ts'

/** A tool of a remote server. */
export interface RemoteTool {
  /** Endpoint of the MCP server. */
  readonly endpoint: URL
  readonly name: string
  /** Its entry in `tools/list`. */
  readonly listed: JsonObject
}

/**
 * Lists the tools of a shop: those of the MCP servers that its index names, or of one server when the URL has a path.
 * Rejects with a sentence when there are none.
 */
export async function listTools(shop: URL): Promise<Map<string, RemoteTool>> {
  const servers = shop.pathname === '/' ? await findServers(shop) : [{ name: '', endpoint: shop }]
  const tools = new Map<string, RemoteTool>()
  for (const { name: server, endpoint } of servers) {
    const { result } = await call(endpoint, 'tools/list', {}, {})
    const listed = result?.['tools']
    if (!Array.isArray(listed)) throw new Error(`${endpoint.href} lists no tools`)
    for (const tool of listed) {
      const name: unknown = isJsonObject(tool) ? tool['name'] : undefined
      if (!isJsonObject(tool) || typeof name !== 'string') continue
      tools.set(tools.has(name) ? `${server}_${name}` : name, { endpoint, name, listed: tool })
    }
  }
  return tools
}

async function findServers(shop: URL): Promise<{ readonly name: string; readonly endpoint: URL }[]> {
  const headers = { accept: 'application/json' }
  const answer = await request({ url: shop, method: 'GET', headers, body: undefined }, {})
  if (answer === undefined) throw new Error(`${shop.origin} does not answer`)
  const listed = isJsonObject(answer.body) ? answer.body['mcp_servers'] : undefined
  const servers = (Array.isArray(listed) ? listed : []).flatMap((server: Json) => {
    const { name, url } = isJsonObject(server) ? server : {}
    if (typeof name !== 'string' || typeof url !== 'string' || !URL.canParse(url)) return []
    const endpoint = new URL(url)
    // The index of another host must not lead to addresses that only this machine can reach.
    const isAllowed = /^https?:$/.test(endpoint.protocol) && (isLoopback(shop.href) || !isLoopback(url))
    return isAllowed ? [{ name, endpoint }] : []
  })
  if (servers.length === 0)
    throw new Error(`${shop.href} names no MCP servers: give the URL of one, such as ${shop.origin}/mcp`)
  return servers
}

/** Calls a tool once, with a payment or without; undefined when no answer has come back. */
export async function callTool(
  { endpoint, name }: RemoteTool,
  args: Json,
  payment: JsonObject,
): Promise<(Answer & { readonly result: JsonObject }) | undefined> {
  const { result, error } = await call(endpoint, 'tools/call', { name, arguments: args }, payment)
  if (result !== undefined) {
    const body = result['structuredContent'] ?? null
    const status = result['isError'] === true ? statusOf(body) : 200
    return { status, reply: { kind: 'tool', result }, body, result }
  }
  if (error === undefined) return undefined
  const { code, message } = error
  const text = typeof message === 'string' ? message : 'the server has refused the call'
  const failed = { isError: true, content: [{ type: 'text', text }] }
  const status = code === INTERNAL_ERROR ? 500 : 400
  return { status, reply: { kind: 'tool', result: failed }, body: null, result: failed }
}

const INTERNAL_ERROR = -32603

/** The status over HTTP. A failure without a status may have been charged. */
function statusOf(body: Json): number {
  if (!isJsonObject(body)) return 500
  if (Array.isArray(body['accepts'])) return 402
  return typeof body['status'] === 'number' ? body['status'] : 500
}

const REVISION = '2026-07-28'

/** One request of MCP, in the revision that needs no session. */
async function call(
  url: URL,
  method: 'tools/list' | 'tools/call',
  params: JsonObject,
  payment: JsonObject,
): Promise<{ readonly result?: JsonObject; readonly error?: JsonObject }> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'ratecard', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    ...payment,
  }
  const { name } = params
  const headers = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
  }
  const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
  const body = Uint8Array.from(Buffer.from(JSON.stringify(message)))
  const answer = await request({ url, method: 'POST', headers, body }, {})
  const { result, error } = answer === undefined ? {} : readMessage(answer.bytes.toString())
  if (isJsonObject(result)) return { result }
  return isJsonObject(error) ? { error } : {}
}

/** The response in a body: JSON, or a stream of events of which one is the response. */
function readMessage(text: string): JsonObject {
  const events = text.startsWith('{')
    ? [text]
    : Array.from(text.matchAll(/^data: *(.*)$/gm), ([, data = '']) => data)
  for (const each of events) {
    try {
      const message: unknown = JSON.parse(each)
      if (isJsonObject(message) && ('result' in message || 'error' in message)) return message
    } catch {
      // Not the response.
    }
  }
  return {}
}

import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'

/** The newest revision, or one of those before it. */
export type Revision = '2026-07-28' | '2025-06-18'

interface Rpc {
  readonly revision?: Revision
  /** Extensions of MCP that the client announces. */
  readonly extensions?: JsonObject
  readonly headers?: Readonly<Record<string, string>>
}

interface RpcAnswer {
  readonly status: number
  readonly result: JsonObject | undefined
  readonly error: JsonObject | undefined
}

/** One request of MCP, as a client puts it on the wire. */
export async function rpc(
  url: string,
  method: string,
  params: JsonObject,
  options: Rpc = {},
): Promise<RpcAnswer> {
  const { revision = '2026-07-28', extensions = {}, headers = {} } = options
  const newest = revision === '2026-07-28'
  const given = isJsonObject(params['_meta']) ? params['_meta'] : {}
  const meta = newest
    ? {
        'io.modelcontextprotocol/protocolVersion': revision,
        'io.modelcontextprotocol/clientCapabilities': { extensions },
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        ...given,
      }
    : given
  const { name } = params
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      ...(newest ? { 'mcp-method': method } : {}),
      ...(newest && typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  return read(response.status, await response.text())
}

/** An answer is JSON, or a stream of one event that is. */
function read(status: number, text: string): RpcAnswer {
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  const message: unknown = JSON.parse(json)
  if (!isJsonObject(message)) throw new Error(`${status} is no message: ${text}`)
  const { result, error } = message
  return { status, result: objectOf(result), error: objectOf(error) }
}

function objectOf(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined
}

export interface ToolResult {
  readonly isError: boolean
  readonly content: JsonObject
  /** The text next to it. */
  readonly text: string
  readonly meta: JsonObject
  readonly whole: JsonObject
}

interface Call extends Rpc {
  readonly meta?: JsonObject
}

/** One call of a tool. */
export async function callTool(
  url: string,
  name: string,
  args: Json,
  { meta = {}, ...options }: Call = {},
): Promise<ToolResult> {
  const { result, error } = await rpc(url, 'tools/call', { name, arguments: args, _meta: meta }, options)
  if (result === undefined) throw new Error(`no result: ${JSON.stringify(error)}`)
  const [first] = Array.isArray(result['content']) ? result['content'] : []
  return {
    isError: result['isError'] === true,
    content: objectOf(result['structuredContent']) ?? {},
    text: isJsonObject(first) && typeof first['text'] === 'string' ? first['text'] : '',
    meta: objectOf(result['_meta']) ?? {},
    whole: result,
  }
}

/** The tools a server lists. */
export async function listTools(url: string, options: Rpc = {}): Promise<JsonObject[]> {
  const { result } = await rpc(url, 'tools/list', {}, options)
  const tools = result?.['tools']
  return Array.isArray(tools) ? tools.filter((tool) => isJsonObject(tool)) : []
}

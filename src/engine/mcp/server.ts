import type { IncomingHttpHeaders } from 'node:http'
import type { ServerCapabilities, StandardSchemaV1 } from '@modelcontextprotocol/server'
import { isJsonObject, type JsonObject } from '../json.ts'
import type { Toolbox } from './toolbox.ts'

/** A call as it came, free of the SDK. */
export interface IncomingCall {
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
export interface Message {
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
export async function speak(
  toolbox: Toolbox,
  answer: AnswerCall,
  { method, headers, body, signal }: Message,
  report: (fault: unknown) => void,
): Promise<Response> {
  const sdk = await import('@modelcontextprotocol/server')
  const { Server, ProtocolError, ProtocolErrorCode, createMcpHandler, CLIENT_CAPABILITIES_META_KEY } = sdk
  const { name, title, version, description, websiteUrl } = toolbox.identity
  const create = (): InstanceType<typeof Server> => {
    const server = new Server(
      { name, title, version, description, ...(websiteUrl === undefined ? {} : { websiteUrl }) },
      {
        capabilities: capabilitiesOf(toolbox),
        ...(toolbox.description === undefined ? {} : { instructions: toolbox.description }),
        cacheHints: {
          'tools/list': { ttlMs: LIST_MS, cacheScope: 'public' },
          'server/discover': { ttlMs: LIST_MS, cacheScope: 'public' },
        },
      },
    )
    server.setRequestHandler('tools/list', { params: ANYTHING }, () => ({ tools: toolbox.listed }))
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
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'there is no tool of this name')
      return result
    })
    return server
  }
  // Nothing here changes under a client's eyes: no stream is kept open for it.
  const { fetch } = createMcpHandler(create, { maxSubscriptions: 0, onerror: report })
  const request = new Request(toolbox.url, { method, headers: headersOf(headers), signal })
  return fetch(request, body === undefined ? {} : { parsedBody: body })
}

function headersOf(incoming: IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming))
    for (const value of [values].flat()) headers.append(name, value)
  return headers
}

/** The SDK holds calls against the revision's own schema. */
const ANYTHING: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'ratecard', validate: (value) => ({ value }) },
}

function extensionsOf(capabilities: unknown): ReadonlySet<string> {
  const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : undefined
  return new Set(isJsonObject(extensions) ? Object.keys(extensions) : [])
}

function capabilitiesOf({ protocols }: Toolbox): ServerCapabilities {
  const all = protocols.map(({ tools }) => tools.capabilities)
  return {
    tools: {},
    extensions: Object.fromEntries(all.flatMap(({ extensions }) => Object.entries(extensions ?? {}))),
    experimental: Object.fromEntries(all.flatMap(({ experimental }) => Object.entries(experimental ?? {}))),
  }
}

import { Readable } from 'node:stream'
import type { Context, Middleware } from 'koa'
import { detailOf, isProbe, type AccessRecord, type Observe } from '../base/access-record.ts'
import type { Cache } from '../cache/cache.ts'
import { COMMON_CARD_PATH, MCP_PATH, serverCardPath } from '../documents/mcp-servers.ts'
import { isJsonObject } from '../base/json.ts'
import { answerCall, type Answered, type ToolCallDeps } from '../mcp/call.ts'
import { handleMessage, hostsOf, isServedAt, parseMessage, serverAt, type AnswerCall } from '../mcp/server.ts'
import type { ToolServer } from '../mcp/tool-server.ts'
import { fixedPrice } from '../payment/call-price.ts'
import type { ServedOperation } from '../purchase/execution.ts'
import type { PurchaseDeps } from '../purchase/request.ts'
import { type UsageStore } from '../usage/usage-store.ts'
import { soldName } from '../usage/counts.ts'
import { BUSY, type BodyReader, discardBody, TOO_DEEP, TOO_MANY } from './body-reader.ts'
import { CORS } from './cors.ts'
import { note } from './reply.ts'
import { disconnectSignal } from './buyer-connections.ts'
import { type Deliveries } from './deliveries.ts'
import { type BackgroundTasks } from './background-tasks.ts'
import { type ClientLimitDeps, overspent, TOO_MANY_TRIES } from './client-limit.ts'
import type { Revision } from './revision.ts'

export interface McpSettings
  extends Omit<ToolCallDeps, keyof McpServing>, Omit<ClientLimitDeps, keyof McpServing> {
  /** Requests keep the revision they started with. */
  readonly serving: { readonly now: McpServing }
  readonly usageStore: UsageStore
  readonly deliveries: Deliveries
  readonly bodies: BodyReader
  readonly tasks: BackgroundTasks
  /** The address of this process; undefined while it does not listen. */
  readonly bound: () => string | undefined
  readonly observe: Observe | undefined
}

export interface McpServing {
  readonly revision: Revision
  readonly purchases: PurchaseDeps
  /** The cache of handler answers. */
  readonly cache: Cache
}

const METHODS = 'POST, GET, DELETE'

/** Pages of every origin may call, as over HTTP: there are no sessions and no cookies that a page could abuse. */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': METHODS,
  'Access-Control-Allow-Headers':
    'Content-Type, Accept, Authorization, X-API-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, SIGN-IN-WITH-X',
  'Access-Control-Max-Age': '86400',
}

const CARD = '/server-card'

/** Serves the MCP servers of the catalog. The card of each is a document of the router, and has a path here too. */
export function serveMcp(settings: McpSettings): Middleware {
  return async (ctx, next) => {
    const { revision } = settings.serving.now
    const { mcpServers } = revision.facts
    const name = serverAt(mcpServers, ctx.host, ctx.path)
    const server = name === undefined ? commonServer(revision, ctx.path) : revision.tools.get(name)
    if (server !== undefined) {
      note(ctx, { place: name === undefined ? MCP_PATH : `${MCP_PATH}/${name}` })
      return answerMessage(settings, ctx, server)
    }
    if (ctx.path.endsWith(CARD)) {
      const endpoint = ctx.path.slice(0, -CARD.length)
      const carded = serverAt(mcpServers, ctx.host, endpoint)
      if (carded !== undefined) ctx.path = serverCardPath(carded)
      else if (endpoint === MCP_PATH) ctx.path = COMMON_CARD_PATH
    }
    return next()
  }
}

function commonServer({ commonTools }: Revision, path: string): ToolServer | undefined {
  return path === MCP_PATH ? commonTools : undefined
}

async function answerMessage(settings: McpSettings, ctx: Context, server: ToolServer): Promise<void> {
  const serving = settings.serving.now
  const { facts } = serving.revision
  const hosts = hostsOf([facts.baseUrl, ...facts.mcpServers.values()], settings.bound())
  if (!isServedAt(ctx.host, hosts)) return refuse(ctx, 403, -32000, 'this Host is not served here')
  ctx.set(CORS)
  if (ctx.method === 'OPTIONS') {
    ctx.set({ Allow: METHODS, ...PREFLIGHT })
    ctx.status = 204
    return
  }
  settings.deliveries.confirm(ctx.req.socket)
  const received = await receiveMessage(settings.bodies, ctx, server.largestMessage)
  if (received.kind === 'refused') return refuse(ctx, received.status, received.code, received.reason)
  const { message: body } = received
  // One for all calls of a message, however many.
  const gone = disconnectSignal(ctx.res)
  const { method, headers } = ctx
  const answer = toolCaller(settings, serving, ctx, server, gone)
  const response = await handleMessage(
    server,
    answer,
    { method, headers, body, signal: gone },
    settings.report,
  )
  // Each tool call has its own log line.
  note(ctx, { logged: response.ok && [body].flat().some((each) => callsTool(each, server)) })
  ctx.status = response.status
  for (const [name, value] of response.headers) ctx.set(name, value)
  if (response.headers.get('Content-Type') === 'text/event-stream' && response.body !== null)
    ctx.body = Readable.fromWeb(response.body)
  else sendText(ctx, response.status, await response.text())
}

type ReceivedMessage =
  /** Parsed; undefined without a body. */
  | { readonly kind: 'message'; readonly message: unknown }
  /** `code`: of JSON-RPC. */
  | { readonly kind: 'refused'; readonly status: number; readonly code: number; readonly reason: string }

/** Reads the body of a POST, of at most `limit` bytes. */
async function receiveMessage(bodies: BodyReader, ctx: Context, limit: number): Promise<ReceivedMessage> {
  if (ctx.method !== 'POST') return { kind: 'message', message: undefined }
  const read = await bodies.read(ctx.req, ctx.res, limit, 'json')
  const refused = (status: number, code: number, reason: string): ReceivedMessage => ({
    kind: 'refused',
    status,
    code,
    reason,
  })
  if (typeof read !== 'string') {
    const parsed = parseMessage(read)
    return parsed.kind === 'fault' ? refused(400, -32700, `the body ${parsed.sentence}`) : parsed
  }
  discardBody(ctx.req, ctx.res)
  switch (read) {
    case 'busy':
      ctx.set('Retry-After', String(BUSY.retryAfter))
      note(ctx, { code: BUSY.code, detail: BUSY.detail })
      return refused(503, -32000, `${BUSY.detail}: try again after Retry-After; nothing was charged`)
    case 'deep':
      return refused(400, -32600, `the message ${TOO_DEEP}`)
    case 'many':
      return refused(413, -32000, `the message ${TOO_MANY}`)
    case 'large':
      return refused(413, -32000, `the message is larger than the ${limit} bytes this server takes`)
    case 'slow':
      return refused(408, -32000, 'the message did not arrive in time')
  }
}

/** Answers the calls of one message, and tells the operator of each. */
function toolCaller(
  settings: McpSettings,
  { revision, purchases, cache }: McpServing,
  ctx: Context,
  server: ToolServer,
  gone: AbortSignal,
): AnswerCall {
  const deps = { ...settings, purchases, cache }
  return async (call) => {
    const tool = server.tools.get(call.name)
    if (tool === undefined) return undefined
    const began = settings.now()
    const answered = await settings.tasks.add(
      answerCall(deps, {
        ...call,
        server,
        tool,
        operations: revision.operations,
        revision: revision.catalog.revision,
        headers: ctx.headers,
        counters: settings.usageStore.of(soldName(tool.served.operation.id)),
        overspent: () => overspent(deps, ctx.req, TOO_MANY_TRIES),
        gone,
      }),
    )
    settings.observe?.(
      accessOf(ctx, call.name, { ...answered, operation: tool.served.operation }, settings.now() - began),
    )
    if (answered.delivered !== undefined) await settings.deliveries.watch(ctx, answered.delivered)
    return answered.reply.result
  }
}

/** What the operator sees of a call that took so many milliseconds. */
function accessOf(
  ctx: Context,
  name: string,
  { operation, reply, price, customer, paid, delivered }: Answered & Pick<ServedOperation, 'operation'>,
  ms: number,
): AccessRecord {
  const { status, code = status === 402 ? 'payment_required' : 'internal', detail, cause } = reply
  const probe = isProbe('POST', ctx.headers['user-agent'])
  return {
    requestId: String(ctx.state['requestId']),
    method: 'POST',
    place: `tool ${name}`,
    status,
    outcome: status < 400 ? 'ok' : code,
    detail: detailOf(status, code, detail),
    cause,
    price: price ?? fixedPrice({ operation }),
    cached: undefined,
    customer,
    sale: paid === undefined ? undefined : { operation: operation.id, paid, probe },
    ms,
    payment: delivered?.id,
  }
}

function callsTool(message: unknown, { tools }: ToolServer): boolean {
  const { method, params } = isJsonObject(message) ? message : {}
  const { name } = isJsonObject(params) ? params : {}
  return method === 'tools/call' && typeof name === 'string' && tools.has(name)
}

/** Koa answers an empty body with 204. */
function sendText(ctx: Context, status: number, text: string): void {
  ctx.body = text === '' ? null : text
  ctx.status = status
}

/** An error of the request itself, as JSON-RPC. */
function refuse(ctx: Context, status: number, code: number, message: string): void {
  ctx.status = status
  ctx.set('Content-Type', 'application/json')
  ctx.body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
}

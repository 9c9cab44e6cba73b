import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { listening } from './http.ts'

/**
 * State of the connection to the node:
 *
 * - `open`: calls are passed on
 * - `down`: connections are cut
 * - `silent`: requests are accepted and never answered
 * - `failing`: the node answers every call with an error of its own
 * - `html`: a gateway in front of the node answers with a page
 * - `broken_after_send`: a transaction reaches the node, its response and all later ones are lost
 */
export type ConnectionState = 'open' | 'down' | 'silent' | 'failing' | 'html' | 'broken_after_send'

export type StandIn = (method: string, params: readonly unknown[]) => Promise<object | undefined>

/** A proxy in front of a node, so that a test can break the connection to it. */
export interface RpcProxy {
  readonly url: string
  readonly set: (state: ConnectionState) => void
  /** Methods called so far, in order, failed ones too. */
  readonly calls: () => readonly string[]
  /** Awaited for every call before it is passed on. */
  readonly onCall: (listener: (method: string) => Promise<void>) => void
  /** Answers in the node’s place with `result` or `error`; undefined passes the call on. */
  readonly instead: (reply: StandIn) => void
  readonly close: () => Promise<void>
}

export async function openRpcProxy(node: string): Promise<RpcProxy> {
  let state: ConnectionState = 'open'
  let listener: (method: string) => Promise<void> = async () => {}
  let standIn: StandIn = async () => undefined
  const calls: string[] = []
  /** Undefined: the connection is cut. */
  const answerCall = async (call: NodeCall): Promise<object | 'silence' | 'page' | undefined> => {
    calls.push(call.method)
    await listener(call.method)
    switch (state) {
      case 'silent':
        return 'silence'
      case 'down':
        return undefined
      case 'html':
        return 'page'
      case 'failing':
        return {
          jsonrpc: '2.0',
          id: call.id,
          error: { code: -32000, message: 'header not found at node.go:17' },
        }
      case 'broken_after_send':
        if (call.method !== 'eth_sendRawTransaction') break
        await pass(node, call)
        state = 'down'
        return undefined
      case 'open':
        break
    }
    const replaced = await standIn(call.method, call.params)
    return replaced === undefined ? pass(node, call) : { jsonrpc: '2.0', id: call.id, ...replaced }
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await json(request)) as NodeCall | readonly NodeCall[]
    const batch = Array.isArray(body) ? (body as readonly NodeCall[]) : undefined
    const answers = await Promise.all((batch ?? [body as NodeCall]).map(answerCall))
    if (answers.includes(undefined)) request.socket.destroy()
    else if (answers.includes('silence')) return
    else if (answers.includes('page'))
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>502 Bad Gateway</h1>')
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(batch === undefined ? answers[0] : answers))
  }
  const { url, close } = await listening(
    createServer((request, response) => {
      answer(request, response).catch(() => request.socket.destroy())
    }),
  )
  return {
    url,
    close,
    set: (next) => (state = next),
    calls: () => calls,
    onCall: (next) => (listener = next),
    instead: (next) => (standIn = next),
  }
}

/** One call to a node whose result is an object. */
export async function askNode(
  node: string,
  method: string,
  params: readonly unknown[],
): Promise<{ readonly result?: Readonly<Record<string, unknown>> | null }> {
  const { result, error } = (await pass(node, { jsonrpc: '2.0', id: 1, method, params })) as {
    result?: Record<string, unknown> | null
    error?: object
  }
  return error === undefined ? { result: result ?? null } : ({ error } as object)
}

interface NodeCall {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

async function pass(node: string, call: NodeCall): Promise<object> {
  const response = await fetch(node, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  })
  return (await response.json()) as object
}

/** One call of JSON-RPC. */
export interface RpcCall {
  readonly id?: number
  readonly method: string
  readonly params: readonly unknown[]
}

/** An answer instead of the node’s own. */
export interface RpcReply {
  readonly status: number
  readonly body: string
}

export interface RpcInterceptor {
  readonly url: string
  /** Calls so far, in order, failed ones too. */
  readonly calls: () => readonly RpcCall[]
  readonly close: () => Promise<void>
}

/**
 * A proxy in front of a node. For each call, also within a batch, `intercept` returns a reply, another call to forward, or
 * undefined to forward it.
 */
export async function openRpcInterceptor(
  node: string,
  intercept: (call: RpcCall) => RpcReply | RpcCall | undefined,
): Promise<RpcInterceptor> {
  const calls: RpcCall[] = []
  const replyTo = async (call: RpcCall): Promise<RpcReply> => {
    calls.push(call)
    const intercepted = intercept(call)
    return intercepted !== undefined && 'status' in intercepted
      ? intercepted
      : forward(node, { ...call, ...intercepted })
  }
  const server = createServer((request, response) => {
    void (async () => {
      const body = (await json(request)) as RpcCall | readonly RpcCall[]
      const reply = Array.isArray(body)
        ? joinReplies(
            body as readonly RpcCall[],
            await Promise.all((body as readonly RpcCall[]).map(replyTo)),
          )
        : await replyTo(body as RpcCall)
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body)
    })()
  })
  const { url, close } = await listening(server)
  return { url, close, calls: () => calls }
}

/** The response to a batch; a reply with an error status is the response to all its calls. */
function joinReplies(calls: readonly RpcCall[], replies: readonly RpcReply[]): RpcReply {
  const failed = replies.find(({ status }) => status !== 200)
  const bodies = replies.map(({ body }, place) => ({ ...(JSON.parse(body) as object), id: calls[place]?.id }))
  return failed ?? { status: 200, body: JSON.stringify(bodies) }
}

export function rpcResult(result: unknown): RpcReply {
  return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) }
}

export function rpcRefusal(status: number, code: number, message: string): RpcReply {
  return { status, body: JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message } }) }
}

async function forward(node: string, call: RpcCall): Promise<RpcReply> {
  const body = JSON.stringify(call)
  const answer = await fetch(node, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return { status: answer.status, body: await answer.text() }
}

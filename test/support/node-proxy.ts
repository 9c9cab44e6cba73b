import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listening } from './listening.ts'

/**
 * State of the connection to the node:
 *
 * - `open`: calls are passed on
 * - `down`: connections are cut
 * - `silent`: requests are taken and never answered
 * - `failing`: the node answers every call with an error of its own
 * - `html`: something in front of the node answers
 * - `broken_after_send`: a transaction reaches the node, its answer and everything later does not come back
 */
export type Way = 'open' | 'down' | 'silent' | 'failing' | 'html' | 'broken_after_send'

export type StandIn = (method: string, params: readonly unknown[]) => Promise<object | undefined>

/** A proxy in front of a node, so that a test can break the connection to it. */
export interface NodeProxy {
  readonly url: string
  readonly set: (way: Way) => void
  /** Methods called so far, in order, failed ones too. */
  readonly calls: () => readonly string[]
  /** Awaited for every call before it is passed on. */
  readonly onCall: (listener: (method: string) => Promise<void>) => void
  /** Answers in the node’s place with `result` or `error`; undefined passes the call on. */
  readonly instead: (stand: StandIn) => void
  readonly close: () => Promise<void>
}

export async function openNodeProxy(node: string): Promise<NodeProxy> {
  let way: Way = 'open'
  let listener: (method: string) => Promise<void> = async () => {}
  let standIn: StandIn = async () => undefined
  const calls: string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await textOf(request)
    const method = methodOf(body)
    calls.push(method)
    await listener(method)
    switch (way) {
      case 'silent':
        return
      case 'down':
        request.socket.destroy()
        return
      case 'html':
        response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>502 Bad Gateway</h1>')
        return
      case 'failing':
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found at node.go:17"}}')
        return
      case 'broken_after_send':
        if (method !== 'eth_sendRawTransaction') break
        await pass(node, body)
        way = 'down'
        request.socket.destroy()
        return
      case 'open':
        break
    }
    const stood = await standIn(method, paramsOf(body))
    if (stood !== undefined) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...stood }))
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(await pass(node, body))
  }
  const { url, close } = await listening(
    createServer((request, response) => {
      answer(request, response).catch(() => request.socket.destroy())
    }),
  )
  return {
    url,
    close,
    set: (next) => (way = next),
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
  const { result, error } = JSON.parse(
    await pass(node, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
  ) as { result?: Record<string, unknown> | null; error?: object }
  return error === undefined ? { result: result ?? null } : ({ error } as object)
}

async function pass(node: string, body: string): Promise<string> {
  const response = await fetch(node, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return response.text()
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function methodOf(body: string): string {
  return /"method":"(\w+)"/.exec(body)?.[1] ?? ''
}

function paramsOf(body: string): readonly unknown[] {
  const { params } = JSON.parse(body) as { params?: readonly unknown[] }
  return params ?? []
}

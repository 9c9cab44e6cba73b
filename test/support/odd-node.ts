import { createServer, type IncomingMessage } from 'node:http'
import { listening } from './listening.ts'

/** One call of JSON-RPC. */
export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

/** What a node says instead of its own answer. */
export interface OddReply {
  readonly status: number
  readonly body: string
}

export interface OddNode {
  readonly url: string
  /** Calls so far, in order, whatever became of them. */
  readonly calls: () => readonly RpcCall[]
  readonly close: () => Promise<void>
}

/**
 * Stands in front of a node and is odd in its own way: answers a call itself, passes on another one in its place, or
 * (undefined) does nothing.
 */
export async function openOddNode(
  node: string,
  odd: (call: RpcCall) => OddReply | RpcCall | undefined,
): Promise<OddNode> {
  const calls: RpcCall[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const call = JSON.parse(await textOf(request)) as RpcCall
      calls.push(call)
      const said = odd(call)
      const reply = said !== undefined && 'status' in said ? said : await pass(node, { ...call, ...said })
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body)
    })()
  })
  const { url, close } = await listening(server)
  return { url, close, calls: () => calls }
}

export function rpcResult(result: unknown): OddReply {
  return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) }
}

export function rpcRefusal(status: number, code: number, message: string): OddReply {
  return { status, body: JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message } }) }
}

async function pass(node: string, call: RpcCall): Promise<OddReply> {
  const body = JSON.stringify(call)
  const answer = await fetch(node, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return { status: answer.status, body: await answer.text() }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

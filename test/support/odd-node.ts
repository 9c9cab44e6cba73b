import { createServer, type IncomingMessage } from 'node:http'
import { listening } from './listening.ts'

/** One call of JSON-RPC. */
export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

/** An answer in the place of the node’s own. */
export interface OddReply {
  readonly status: number
  readonly body: string
}

export interface OddNode {
  readonly url: string
  /** Calls so far, in order, failed ones too. */
  readonly calls: () => readonly RpcCall[]
  readonly close: () => Promise<void>
}

/**
 * A proxy in front of a node that answers a call itself, passes on another one in its place, or (undefined) passes the
 * call on.
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

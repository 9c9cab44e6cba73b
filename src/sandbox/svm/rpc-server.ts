import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../engine/base/json.ts'
import { type Fault, omitted } from './faults.ts'
import { type MethodContext, METHODS, pretendToSend } from './methods.ts'
import { RpcError } from './rpc-error.ts'

/** What becomes of one call. */
type Answered = { readonly kind: 'answer'; readonly answer: JsonObject } | { readonly kind: 'lost' }

/** JSON-RPC over HTTP, single calls and batches. */
export function rpcServer(context: MethodContext): Server {
  // The caller ends a connection: one that is closed here, just when it is used again, looks like a lost answer.
  return createServer({ keepAliveTimeout: 0 }, (request, response) => {
    void respond(context, request, response).catch(() => response.destroy())
  })
}

async function respond(
  context: MethodContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    response.end('ok')
    return
  }
  const pieces: Uint8Array[] = []
  for await (const piece of request) pieces.push(piece)
  const asked = parseJson(Buffer.concat(pieces).toString())
  const answers: Json[] = []
  // In turn: a batch may send a transaction and ask for it.
  for (const call of Array.isArray(asked) ? asked : [asked]) {
    const answered = await answer(context, call)
    if (answered.kind === 'lost') {
      response.destroy()
      return
    }
    answers.push(answered.answer)
  }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]))
}

async function answer(context: MethodContext, call: Json | undefined): Promise<Answered> {
  if (call === undefined) return failed(null, new RpcError(-32700, 'Parse error'))
  const { id = null, method, params = [] } = isJsonObject(call) ? call : {}
  if (typeof method !== 'string') return failed(id, new RpcError(-32600, 'Invalid request'))
  const fault = context.faults.take(method, params)
  try {
    const result = await resultOf(context, method, Array.isArray(params) ? params : [], fault)
    if (fault?.kind === 'lose') return { kind: 'lost' }
    return {
      kind: 'answer',
      answer: { jsonrpc: '2.0', result: fault?.kind === 'omit' ? omitted(result) : result, id },
    }
  } catch (error) {
    const known = error instanceof RpcError ? error : new RpcError(-32603, `Internal error: ${String(error)}`)
    return fault?.kind === 'lose' ? { kind: 'lost' } : failed(id, known)
  }
}

async function resultOf(
  context: MethodContext,
  method: string,
  params: readonly Json[],
  fault: Fault | undefined,
): Promise<Json> {
  const run = METHODS[method]
  if (run === undefined) throw new RpcError(-32601, 'Method not found')
  if (fault?.kind === 'refuse') throw new RpcError(-32005, 'Node is unhealthy', { numSlotsBehind: null })
  if (fault?.kind === 'drop') return pretendToSend(params)
  if (fault?.kind === 'slow') await pause(fault.ms)
  return run(context, params)
}

function failed(id: Json, { code, message, data }: RpcError): Answered {
  const error = data === undefined ? { code, message } : { code, message, data }
  return { kind: 'answer', answer: { jsonrpc: '2.0', error, id } }
}

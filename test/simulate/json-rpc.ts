import { isJsonObject, parseJson, type JsonObject } from '../../src/engine/base/json.ts'

export type Reply = { readonly result: unknown } | { readonly error: JsonObject }

/** Whether a node answers several calls in one request. */
export type Batches = 'taken' | 'refused'

/** Answers the body of a JSON-RPC request, call by call. */
export function answerCalls(
  body: string,
  batches: Batches,
  reply: (method: unknown, params: readonly unknown[]) => Reply,
): unknown {
  const answerCall = (call: unknown): JsonObject => {
    if (!isJsonObject(call)) return { error: { code: -32600, message: 'invalid request' } }
    const params = Array.isArray(call['params']) ? call['params'] : []
    const replied = reply(call['method'], params)
    return JSON.parse(JSON.stringify({ jsonrpc: '2.0', id: call['id'], ...replied }))
  }
  const asked = parseJson(body)
  if (!Array.isArray(asked)) return answerCall(asked)
  if (batches === 'taken') return asked.map(answerCall)
  return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'batches are not supported' } }
}

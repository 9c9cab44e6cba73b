import type { Json } from '../../engine/base/json.ts'

/** An error of JSON-RPC, with the code and the words of a node. */
export class RpcError extends Error {
  readonly code: number
  readonly data: Json | undefined

  constructor(code: number, message: string, data?: Json) {
    super(message)
    this.code = code
    this.data = data
  }
}

export function invalidParams(message: string): RpcError {
  return new RpcError(-32602, `Invalid params: ${message}`)
}

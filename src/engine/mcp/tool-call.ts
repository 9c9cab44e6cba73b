import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'
import type { Tally } from '../tally/tally.ts'
import type { PaidCallDeps } from '../purchase/purchase.ts'
import type { FaultDeps } from '../purchase/problem.ts'
import type { Operations } from '../purchase/execution.ts'
import type { ToolReply } from './result.ts'
import type { ServedTool, Toolbox } from './toolbox.ts'

/** What answering calls takes of the world. */
export interface Counter extends PaidCallDeps, FaultDeps {
  readonly baseUrl: string
}

/** One call of one tool. */
export interface ToolCall {
  readonly toolbox: Toolbox
  readonly tool: ServedTool
  readonly operations: Operations
  /** Of the catalog. */
  readonly revision: string
  readonly arguments: unknown
  readonly meta: JsonObject
  readonly headers: IncomingHttpHeaders
  /** Names of the extensions of MCP the client knows. */
  readonly extensions: ReadonlySet<string>
  readonly tally: Tally
  /** Aborted when the client has gone away before its answer. */
  readonly watch: () => AbortSignal
}

export interface Answered {
  readonly reply: ToolReply
  /** Set when the reply is the paid answer: its arrival is recorded. */
  readonly delivered?: Entry
}

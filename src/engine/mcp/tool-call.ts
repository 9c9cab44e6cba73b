import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'
import type { Tally } from '../tally/tally.ts'
import type { Till } from '../work/buy.ts'
import type { FaultSettings } from '../work/fault.ts'
import type { Operations } from '../work/served.ts'
import type { ToolReply } from './result.ts'
import type { ServedTool, Toolbox } from './toolbox.ts'

/** What answering calls takes of the world. */
export interface Counter extends Till, FaultSettings {
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

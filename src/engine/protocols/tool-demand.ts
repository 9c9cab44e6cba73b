import type { JsonObject } from '../json.ts'

/** Members of MCP's server capabilities. */
export interface Capabilities {
  readonly extensions?: Record<string, Record<string, never>>
  /** Payment scheme, transport MCP. */
  readonly experimental?: Record<string, { methods: Record<string, { intents: string[] }> }>
}

/** What an unpaid call is told in one protocol. */
export interface ToolDemand {
  /** Members of the result's structured content, and of its text. */
  readonly content: JsonObject
  readonly meta: JsonObject
  /** What clients get in place of all that, if they say that they know this extension of MCP. */
  readonly extension?: { readonly name: string; readonly result: JsonObject }
}

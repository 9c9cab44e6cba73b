import type {
  CommandLine,
  Flags,
  ServiceContext,
  ServiceDefinition,
  Terminal,
} from '../engine/service-definition.ts'
import type { Env } from '../env.ts'

export type { Flags, Terminal } from '../engine/service-definition.ts'

/** A row in the table of `commands.ts`. */
export interface Command extends CommandLine {
  /** Resolves to the exit code. */
  readonly run: (call: Call) => Promise<number>
}

/** Everything a command may use: it reads no ambient state. */
export interface Call {
  readonly positionals: readonly string[]
  readonly flags: Flags
  readonly env: Env
  readonly terminal: Terminal
  /** The service behind the catalog, and its context. */
  readonly service: ServiceDefinition<unknown>
  readonly context: ServiceContext<unknown>
  /** Version of this program. */
  readonly version: string
}

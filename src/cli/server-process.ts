import type { ResourceStack } from '../engine/base/resource-stack.ts'
import type { HttpServer } from '../engine/http/server.ts'
import type { Call } from './command.ts'
import type { Log } from './log.ts'
import type { Supervisor } from './supervised-process.ts'
import type { Watch } from './watch.ts'

/** What a server is to serve, and how. */
export interface Plan {
  readonly file: string
  readonly port: number
  readonly sandbox: boolean
  readonly offline: boolean
  readonly watch: boolean
  /** How many processes serve together. */
  readonly workers: number
  /** How long requests are still taken after a SIGTERM, in milliseconds. */
  readonly drainMs: number
  /** Port of the console, 0 for any; undefined: there is none. */
  readonly consolePort: number | undefined
  /** Refuses sources whose terms do not allow resale. */
  readonly productionStrict: boolean
  readonly dataDir: string
}

/** What one process serves with. */
export interface ServerProcess {
  readonly call: Call
  readonly plan: Plan
  readonly log: Log
  readonly server: HttpServer
  /** The address that it listens on. */
  readonly host: string
  readonly watch: Watch
  readonly supervisor: Supervisor | undefined
  readonly opened: ResourceStack
}

import type { CommandLine, Flags, Terminal } from '../engine/service-definition.ts'
import type { BuyerEnv } from '../env/buyer-env.ts'

/** A command for buyers, in `ratecard` and in `ratecard-buyer`. */
export interface BuyerCommand extends CommandLine {
  /** Resolves to the exit code. */
  readonly run: (call: BuyerCall) => Promise<number>
}

/** Everything such a command may use. */
export interface BuyerCall {
  readonly positionals: readonly string[]
  readonly flags: Flags
  readonly env: BuyerEnv
  readonly terminal: Terminal
  /** Version of this program. */
  readonly version: string
}

import type { ParseArgsConfig } from 'node:util'
import type { Env } from '../env.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/** One word after `ratecard`: a file of its own, gathered in the list of `main.ts`. */
export interface Command {
  readonly name: string
  readonly summary: string
  readonly usage: string
  readonly examples: readonly string[]
  readonly options: Options
  /** Resolves to the exit code. */
  readonly run: (call: Call) => Promise<number>
}

/** What a command is given: nothing is read from the surroundings. */
export interface Call {
  readonly positionals: readonly string[]
  readonly flags: Flags
  readonly env: Env
  readonly terminal: Terminal
  /** Names the catalog is checked against. */
  readonly known: { readonly handlers: readonly string[]; readonly documents: readonly string[] }
}

export interface Flags {
  readonly text: (name: string) => string | undefined
  readonly given: (name: string) => boolean
}

export interface Terminal {
  /** Results: stdout. */
  readonly out: (line: string) => void
  /** Progress and logs: stderr. */
  readonly err: (line: string) => void
}

import type { Command, Terminal } from '../../src/cli/command.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import type { ServiceDefinition } from '../../src/engine/service-definition.ts'
import { runCommand } from '../../src/cli/run.ts'
import { readEnv, type Env } from '../../src/env.ts'

/** For commands that only read, and for those that fail. */
const serviceOf = (handlers: readonly string[]): ServiceDefinition<unknown> => ({
  handlers: () => Object.fromEntries(handlers.map((name) => [name, unasked])),
})

const unasked = () => Promise.reject(new Error('no handler is run here'))

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

interface CommandOptions {
  readonly variables?: Readonly<Record<string, string>>
  readonly env?: () => Env
  readonly more?: readonly Command[]
  readonly handlers?: readonly string[]
  readonly reader?: Terminal['reader']
}

/** Runs one command line in this process, which saves the start of another one. */
export async function runLine(
  argv: readonly string[],
  {
    variables = {},
    env = () => readEnv(variables),
    more = [],
    handlers = [],
    reader = 'program',
  }: CommandOptions = {},
): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCommand({
    commands: [...COMMANDS, ...more],
    argv,
    env,
    terminal: {
      out: (line) => out.push(line),
      err: (line) => err.push(line),
      reader,
      logReader: 'program',
      progress: () => undefined,
    },
    loadService: async () => serviceOf(handlers),
    version: '9.8.7',
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

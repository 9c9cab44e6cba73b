import { findCommand, noCommand, runParsed } from '../command-line/run-command.ts'
import type { Terminal } from '../engine/service-definition.ts'
import { readBuyerEnv } from '../env/buyer-env.ts'
import { EnvError } from '../env/env-error.ts'
import { Reader, type Variables } from '../env/reader.ts'
import { buyerCommands } from './commands.ts'

const PROGRAM = {
  name: 'ratecard-buyer' as const,
  summary: 'pay for HTTP APIs and MCP tools per call, over x402 and MPP',
  notes: [],
}

interface Invocation {
  readonly argv: readonly string[]
  readonly variables: Variables
  readonly terminal: Terminal
  readonly version: string
}

/** The program `ratecard-buyer`; resolves to the exit code. */
export async function runBuyer({ argv, variables, terminal, version }: Invocation): Promise<number> {
  if (argv[0] === '--version' && argv.length === 1) {
    terminal.out(`${PROGRAM.name} ${version}`)
    return 0
  }
  const commands = buyerCommands(PROGRAM.name)
  const found = findCommand(commands, argv)
  if (found === undefined) return noCommand(PROGRAM, commands, argv, terminal)
  return runParsed({
    program: PROGRAM,
    command: found,
    argv,
    terminal,
    work: async (command, { positionals, flags }) => {
      const reader = new Reader((name) => variables[name], Object.keys(variables))
      const env = readBuyerEnv(reader)
      if (reader.problems.length > 0) throw new EnvError(reader.problems)
      return command.run({ positionals, flags, env, terminal, version })
    },
  })
}

import { findCommand, noCommand, reportError, runParsed } from '../command-line/run-command.ts'
import type { ServiceDefinition } from '../engine/service-definition.ts'
import type { Env } from '../env.ts'
import type { Command, Terminal } from './command.ts'
import { commandsOf } from './load-service.ts'

const PROGRAM = {
  name: 'ratecard',
  summary: 'one catalog.yaml in, a paid HTTP API out',
  notes: [
    'With --service DIR every command uses the service that DIR/index.js exports; default: "ratecard": { "service" } in package.json.',
  ],
}

export interface Invocation {
  readonly commands: readonly Command[]
  readonly argv: readonly string[]
  readonly env: (service: ServiceDefinition<unknown>) => Env
  readonly terminal: Terminal
  /** Loads the service of the catalog. */
  readonly loadService: () => Promise<ServiceDefinition<unknown>>
  readonly version: string
}

/** Finds the command, parses its flags and runs it; resolves to the exit code. */
export async function runCommand(invocation: Invocation): Promise<number> {
  const { commands, argv, terminal, loadService, version } = invocation
  if (argv[0] === '--version' && argv.length === 1) {
    terminal.out(`ratecard ${version}`)
    return 0
  }
  const command = findCommand(commands, argv)
  if (command !== undefined) return await execute(command, invocation)
  try {
    const service = await loadService()
    const all = [...commands, ...commandsOf(service)]
    const added = findCommand(all, argv)
    if (added === undefined) return noCommand(PROGRAM, all, argv, terminal)
    return await execute(added, { ...invocation, loadService: async () => service })
  } catch (fault) {
    return reportError(fault, 'ratecard', terminal)
  }
}

function execute(found: Command, invocation: Invocation): Promise<number> {
  const { argv, env, terminal, loadService, version } = invocation
  return runParsed({
    program: PROGRAM,
    command: found,
    argv,
    terminal,
    work: async (command, { positionals, flags }) => {
      const service = await loadService()
      const settings = env(service)
      const { baseUrl, dataDir } = settings
      const context = { settings: settings.service, baseUrl, dataDir, version }
      return command.run({ positionals, flags, env: settings, terminal, service, context, version })
    },
  })
}

import { parseArgs, type ParseArgsConfig } from 'node:util'
import { EnvError, type Env } from '../env.ts'
import type { ServiceDefinition } from '../engine/internal.ts'
import { UsageError, type Command, type Terminal } from './command.ts'
import { commandsOf } from './service.ts'

/** sysexits.h EX_USAGE: the command line itself is wrong. */
const USAGE = 64
/** sysexits.h EX_CONFIG: the environment is wrong. */
const CONFIGURATION = 78

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
    if (added === undefined) return noCommand(all, argv, terminal)
    return await execute(added, { ...invocation, loadService: async () => service })
  } catch (fault) {
    if (!(fault instanceof Error) || BUGS.some((kind) => fault instanceof kind)) throw fault
    terminal.err(`ratecard: ${fault.message}`)
    return 1
  }
}

function findCommand(commands: readonly Command[], argv: readonly string[]): Command | undefined {
  return commands.find((each) => wordsOf(each).every((word, place) => argv[place] === word))
}

async function execute(command: Command, invocation: Invocation): Promise<number> {
  const { argv, env, terminal, loadService, version } = invocation
  const { name } = command
  const parsed = parse(command, argv.slice(wordsOf(command).length))
  if (parsed.kind === 'fault') {
    terminal.err(`ratecard ${name}: ${parsed.sentence}\n${usage(command)}`)
    return USAGE
  }
  if (parsed.values['help'] === true) {
    terminal.out(help(command))
    return 0
  }
  const surplus = parsed.positionals[command.operands.length]
  if (surplus !== undefined) {
    terminal.err(`ratecard ${name}: unexpected argument "${surplus}"\n${usage(command)}`)
    return USAGE
  }
  try {
    const flags = {
      text: (flag: string) => {
        const value = parsed.values[flag]
        return typeof value === 'string' ? value : undefined
      },
      given: (flag: string) => parsed.values[flag] !== undefined,
      all: (flag: string) => {
        const values = parsed.values[flag]
        return Array.isArray(values) ? values.map(String) : []
      },
    }
    const { positionals } = parsed
    const service = await loadService()
    const settings = env(service)
    const { baseUrl, dataDir } = settings
    const context = { settings: settings.service, baseUrl, dataDir, version }
    return await command.run({ positionals, flags, env: settings, terminal, service, context, version })
  } catch (fault) {
    if (fault instanceof UsageError) {
      terminal.err(`ratecard ${name}: ${fault.message}\n${usage(command)}`)
      return USAGE
    }
    if (!(fault instanceof EnvError)) return reportError(fault, command, terminal)
    terminal.err(fault.problems.map((problem) => `environment: ${problem}`).join('\n'))
    return CONFIGURATION
  }
}

function wordsOf({ name }: Command): string[] {
  return name.split(' ')
}

const HELP: ReadonlySet<string | undefined> = new Set(['help', '--help', '-h'])

function noCommand(commands: readonly Command[], argv: readonly string[], terminal: Terminal): number {
  const [first, second] = argv
  const family = commands.filter((each) => wordsOf(each).length > 1 && wordsOf(each)[0] === first)
  const list = overview(family.length > 0 ? family : commands)
  if (HELP.has(family.length > 0 ? second : first)) {
    terminal.out(list)
    return 0
  }
  const name = family.length > 0 && second !== undefined ? `${first} ${second}` : first
  if (first === undefined) terminal.out(list)
  else if (family.length > 0 && second === undefined)
    terminal.err(`ratecard ${name}: missing subcommand\n\n${list}`)
  else terminal.err(`ratecard: unknown command "${name}"\n\n${list}`)
  return USAGE
}

/** Errors of the environment or the user print one line; bugs of this program keep their stack. */
function reportError(fault: unknown, { name }: Command, { err }: Terminal): number {
  if (!(fault instanceof Error) || BUGS.some((kind) => fault instanceof kind)) throw fault
  // The engine is not imported here, so its error is known by name. Each of its issues says where it is.
  err(fault.name === 'CatalogError' ? fault.message : `ratecard ${name}: ${fault.message}`)
  return 1
}

const BUGS = [TypeError, RangeError, ReferenceError]

type Parsed =
  | {
      readonly kind: 'parsed'
      readonly values: Readonly<Record<string, unknown>>
      readonly positionals: string[]
    }
  | { readonly kind: 'fault'; readonly sentence: string }

function parse(command: Command, args: readonly string[]): Parsed {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { ...parserOptions(command), help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    })
    return { kind: 'parsed', values, positionals }
  } catch (fault) {
    return { kind: 'fault', sentence: fault instanceof Error ? (fault.message.split('. ')[0] ?? '') : '' }
  }
}

function parserOptions({ options }: Command): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { value, short, multiple = false }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string', multiple, ...(short !== undefined && { short }) },
    ]),
  )
}

function overview(commands: readonly Command[]): string {
  return [
    'ratecard: one catalog.yaml in, a paid HTTP API out',
    '',
    ...table(commands.map(({ name, summary }) => [name, summary])),
    '',
    'Run "ratecard COMMAND --help" for the options of a command, "ratecard --version" for the version.',
    'With --service DIR every command uses the service that DIR/index.js exports; default: "ratecard": { "service" } in package.json.',
  ].join('\n')
}

function usage({ name, operands, options }: Command): string {
  const more = Object.keys(options).length > 0 ? ['[options]'] : []
  return `usage: ratecard ${[name, ...operands, ...more].join(' ')}`
}

function help(command: Command): string {
  const { summary, options, examples } = command
  const rows = Object.entries(options).map(([name, { value, short, text }]): [string, string] => {
    const flag = short === undefined ? `--${name}` : `-${short}, --${name}`
    return [value === undefined ? flag : `${flag} ${value}`, text]
  })
  return [
    usage(command),
    `  ${summary}`,
    ...(rows.length === 0 ? [] : ['', 'options:', ...table(rows)]),
    '',
    'examples:',
    ...examples.map((example) => `  ${example}`),
  ].join('\n')
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([first]) => first.length))
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`)
}

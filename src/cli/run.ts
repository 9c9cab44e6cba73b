import { parseArgs } from 'node:util'
import { EnvError, type Env } from '../env.ts'
import { UsageError, type Call, type Command, type Terminal } from './command.ts'

/** sysexits.h EX_USAGE: the command line itself is wrong. */
const USAGE = 64
/** sysexits.h EX_CONFIG: the environment is wrong. */
const CONFIGURATION = 78

export interface Invocation {
  readonly commands: readonly Command[]
  readonly argv: readonly string[]
  readonly env: () => Env
  readonly terminal: Terminal
  readonly shop: Call['shop']
  readonly known: () => Call['known']
  readonly version: string
}

/** Finds the command, parses its flags and runs it; resolves to the exit code. */
export async function runCommand({
  commands,
  argv,
  env,
  terminal,
  shop,
  known,
  version,
}: Invocation): Promise<number> {
  if (argv[0] === '--version' && argv.length === 1) {
    terminal.out(`ratecard ${version}`)
    return 0
  }
  const command = commands.find((each) => wordsOf(each).every((word, place) => argv[place] === word))
  if (command === undefined) return noCommand(commands, argv, terminal)
  const { name } = command
  const parsed = parse(command, argv.slice(wordsOf(command).length))
  if (parsed.kind === 'fault') {
    terminal.err(`ratecard ${name}: ${parsed.sentence}\nusage: ratecard ${command.usage}`)
    return USAGE
  }
  if (parsed.values['help'] === true) {
    terminal.out(help(command))
    return 0
  }
  const surplus = parsed.positionals[command.takes]
  if (surplus !== undefined) {
    terminal.err(`ratecard ${name}: "${surplus}" is too much\nusage: ratecard ${command.usage}`)
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
    return await command.run({ positionals, flags, env: env(), terminal, shop, version, known: known() })
  } catch (fault) {
    if (fault instanceof UsageError) {
      terminal.err(`ratecard ${name}: ${fault.message}\nusage: ratecard ${command.usage}`)
      return USAGE
    }
    if (!(fault instanceof EnvError)) return tellFault(fault, command, terminal)
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
    terminal.err(`ratecard ${name}: say what to do\n\n${list}`)
  else terminal.err(`ratecard: there is no command "${name}"\n\n${list}`)
  return USAGE
}

/** What the machine or the user has caused is told in one line; mistakes of this program keep their stack. */
function tellFault(fault: unknown, { name }: Command, { err }: Terminal): number {
  if (!(fault instanceof Error) || OURS.some((kind) => fault instanceof kind)) throw fault
  err(`ratecard ${name}: ${fault.message}`)
  return 1
}

const OURS = [TypeError, RangeError, ReferenceError]

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
      options: { ...command.options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    })
    return { kind: 'parsed', values, positionals }
  } catch (fault) {
    return { kind: 'fault', sentence: fault instanceof Error ? (fault.message.split('. ')[0] ?? '') : '' }
  }
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return [
    'ratecard: one catalog.yaml in, a paid HTTP API out',
    '',
    ...rows,
    '',
    'ratecard COMMAND --help says more; ratecard --version says which this is.',
  ].join('\n')
}

function help({ usage, summary, options, examples }: Command): string {
  const flags = Object.entries(options).map(
    ([name, { type }]) => `  --${name}${type === 'string' ? ' …' : ''}`,
  )
  return [
    `ratecard ${usage}`,
    `  ${summary}`,
    ...(flags.length === 0 ? [] : ['', ...flags]),
    '',
    'examples:',
    ...examples.map((example) => `  ${example}`),
  ].join('\n')
}

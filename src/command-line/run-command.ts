import { EnvError } from '../env/env-error.ts'
import type { CommandLine, Terminal } from '../engine/service-definition.ts'
import { help, overview, type Program, usage } from './help.ts'
import { type ParsedLine, parseLine } from './parse-line.ts'
import { UsageError } from './usage-error.ts'

/** sysexits.h EX_USAGE: the command line itself is wrong. */
export const USAGE = 64
/** sysexits.h EX_CONFIG: the environment is wrong. */
const CONFIGURATION = 78

export function findCommand<C extends CommandLine>(
  commands: readonly C[],
  argv: readonly string[],
): C | undefined {
  return commands.find((each) => wordsOf(each).every((word, place) => argv[place] === word))
}

interface CommandRun<C extends CommandLine> {
  readonly program: Program
  readonly command: C
  readonly argv: readonly string[]
  readonly terminal: Terminal
  /** Resolves to the exit code. */
  readonly work: (command: C, line: ParsedLine) => Promise<number>
}

/** Parses the flags of a command and runs it, or prints its help; resolves to the exit code. */
export async function runParsed<C extends CommandLine>(run: CommandRun<C>): Promise<number> {
  const { program, command, argv, terminal, work } = run
  const label = `${program.name} ${command.name}`
  const misused = (sentence: string): number => {
    terminal.err(`${label}: ${sentence}\n${usage(program, command)}`)
    return USAGE
  }
  const line = parseLine(command, argv.slice(wordsOf(command).length))
  if (line.kind === 'fault') return misused(line.sentence)
  if (line.flags.given('help')) {
    terminal.out(help(program, command))
    return 0
  }
  const surplus = line.positionals[command.operands.length]
  if (surplus !== undefined) return misused(`unexpected argument "${surplus}"`)
  try {
    return await work(command, line)
  } catch (fault) {
    if (fault instanceof UsageError) return misused(fault.message)
    if (fault instanceof EnvError) {
      terminal.err(fault.problems.map((problem) => `environment: ${problem}`).join('\n'))
      return CONFIGURATION
    }
    return reportError(fault, label, terminal)
  }
}

const HELP: ReadonlySet<string | undefined> = new Set(['help', '--help', '-h'])

/** The answer to a command line without a known command: the list of commands. */
export function noCommand(
  program: Program,
  commands: readonly CommandLine[],
  argv: readonly string[],
  terminal: Terminal,
): number {
  const [first, second] = argv
  const family = commands.filter((each) => wordsOf(each).length > 1 && wordsOf(each)[0] === first)
  const list = overview(program, family.length > 0 ? family : commands)
  if (HELP.has(family.length > 0 ? second : first)) {
    terminal.out(list)
    return 0
  }
  const name = family.length > 0 && second !== undefined ? `${first} ${second}` : first
  if (first === undefined) terminal.out(list)
  else if (family.length > 0 && second === undefined)
    terminal.err(`${program.name} ${name}: missing subcommand\n\n${list}`)
  else terminal.err(`${program.name}: unknown command "${name}"\n\n${list}`)
  return USAGE
}

/** Errors of the environment or the user print one line; bugs of this program keep their stack. */
export function reportError(fault: unknown, label: string, { err }: Terminal): number {
  if (!(fault instanceof Error) || BUGS.some((kind) => fault instanceof kind)) throw fault
  // The engine is not imported here, so its error is known by name. Each of its issues says where it is.
  err(fault.name === 'CatalogError' ? fault.message : `${label}: ${fault.message}`)
  return 1
}

const BUGS = [TypeError, RangeError, ReferenceError]

function wordsOf({ name }: CommandLine): string[] {
  return name.split(' ')
}

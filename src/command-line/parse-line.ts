import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { CommandLine, Flags } from '../engine/service-definition.ts'

export interface ParsedLine {
  readonly kind: 'parsed'
  readonly positionals: readonly string[]
  readonly flags: Flags
}

/** Reads what follows the name of a command. `help` is a flag of every command. */
export function parseLine(
  command: CommandLine,
  args: readonly string[],
): ParsedLine | { readonly kind: 'fault'; readonly sentence: string } {
  try {
    const { values, positionals } = parseArgs({
      args: args.map((arg) => (mayBeAlone(command, arg) ? `${arg}=` : arg)),
      options: { ...parserOptions(command), help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    })
    return { kind: 'parsed', positionals, flags: flagsOf(values) }
  } catch (fault) {
    return { kind: 'fault', sentence: fault instanceof Error ? (fault.message.split('. ')[0] ?? '') : '' }
  }
}

/** Whether it is an option whose value may be left out, without one. */
function mayBeAlone({ options }: CommandLine, arg: string): boolean {
  return arg.startsWith('--') && options[arg.slice(2)]?.optional === true
}

function parserOptions({ options }: CommandLine): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { value, short, multiple = false }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string', multiple, ...(short !== undefined && { short }) },
    ]),
  )
}

function flagsOf(values: Readonly<Record<string, unknown>>): Flags {
  return {
    text: (flag) => {
      const value = values[flag]
      return typeof value === 'string' ? value : undefined
    },
    given: (flag) => values[flag] !== undefined,
    all: (flag) => {
      const found = values[flag]
      return Array.isArray(found) ? found.map(String) : []
    },
  }
}

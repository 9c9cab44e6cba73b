import type { CommandLine } from '../engine/service-definition.ts'

/** A program whose first words name a command. */
export interface Program {
  readonly name: string
  readonly summary: string
  /** Lines below the list of commands. */
  readonly notes: readonly string[]
}

export function overview({ name, summary, notes }: Program, commands: readonly CommandLine[]): string {
  return [
    `${name}: ${summary}`,
    '',
    ...table(commands.map((each) => [each.name, each.summary])),
    '',
    `Run "${name} COMMAND --help" for the options of a command, "${name} --version" for the version.`,
    ...notes,
  ].join('\n')
}

export function usage(program: Program, { name, operands, options }: CommandLine): string {
  const more = Object.keys(options).length > 0 ? ['[options]'] : []
  return `usage: ${program.name} ${[name, ...operands, ...more].join(' ')}`
}

export function help(program: Program, command: CommandLine): string {
  const { summary, options, examples } = command
  const rows = Object.entries(options).map(([name, { value, optional, short, text }]): [string, string] => {
    const flag = short === undefined ? `--${name}` : `-${short}, --${name}`
    if (value === undefined) return [flag, text]
    return [optional === true ? `${flag}[=${value}]` : `${flag} ${value}`, text]
  })
  return [
    usage(program, command),
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

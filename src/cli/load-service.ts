import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ServiceDefinition } from '../engine/service-definition.ts'
import type { Command } from './command.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { columnsFor } from './terminal-text.ts'

/** For a catalog without a service: its handlers, if any, come from `--handlers`. */
const NO_SERVICE: ServiceDefinition<unknown> = { handlers: () => ({}) }

/** Takes `--service DIR` out of a command line, where it may stand anywhere. */
export function takeServiceFlag(argv: readonly string[]): {
  readonly argv: readonly string[]
  readonly directory: string | undefined
} {
  const place = argv.findIndex((word) => word === '--service' || word.startsWith('--service='))
  const word = argv[place]
  if (word === undefined) return { argv, directory: undefined }
  const [directory, length] =
    word === '--service' ? [argv[place + 1], 2] : [word.slice('--service='.length), 1]
  return { argv: argv.toSpliced(place, length), directory: directory ?? '' }
}

/**
 * Loads the service from DIR/index.js: the directory given, else `ratecard.service` in the package.json of the working
 * folder. In a folder without a package.json it is the service next to this program, if there is one. Rejects with a
 * sentence when a named service cannot be loaded.
 */
export async function loadService(
  directory: string | undefined,
  cwd: string,
  program: string,
): Promise<ServiceDefinition<unknown>> {
  const folder = directory === undefined ? namedFolder(cwd, program) : resolve(cwd, directory)
  if (folder === undefined) return NO_SERVICE
  const file = join(folder, 'index.js')
  if (!existsSync(file))
    throw new Error(
      `no such file: ${file}; --service, or "ratecard": { "service" } in package.json, names the folder of an index.js`,
    )
  const loaded: unknown = await import(pathToFileURL(file).href)
  if (hasService(loaded)) return loaded.service
  throw new Error(`${file} exports no "service": what defineService({ handlers, … }) returns`)
}

function namedFolder(cwd: string, program: string): string | undefined {
  if (existsSync(join(cwd, 'package.json'))) return folderIn(cwd)
  const shipped = folderIn(program)
  return shipped !== undefined && existsSync(shipped) ? shipped : undefined
}

function folderIn(root: string): string | undefined {
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const settings = property(manifest, 'ratecard')
  const folder = property(settings, 'service')
  return typeof folder === 'string' ? resolve(root, folder) : undefined
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined
}

function hasService(value: unknown): value is { readonly service: ServiceDefinition<unknown> } {
  return typeof property(property(value, 'service'), 'handlers') === 'function'
}

/** The commands that a service adds. */
export function commandsOf({ commands = [] }: ServiceDefinition<unknown>): Command[] {
  return commands.map((command) => ({
    ...command,
    run: ({ positionals, flags, terminal, context }) =>
      command.run({
        positionals,
        flags,
        terminal,
        context,
        misuse: (message) => new UsageError(message),
        table: (rows) =>
          terminal.reader === 'person'
            ? columnsFor(terminal, rows)
            : rows.map((row) => row.join('\t')).join('\n'),
      }),
  }))
}

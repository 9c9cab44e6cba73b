import type { HandlerMap } from './handler.ts'
import type { JsonObject } from './base/json.ts'

/**
 * A service behind a catalog: its handlers, and what else it brings. `Settings` is what `env` returns.
 *
 * A folder exports it as `service` from its `index.js`. `ratecard.service` in package.json or `--service DIR` names the
 * folder. Only `handlers` is required. Load what is heavy inside the functions: every command imports the definition.
 */
export interface ServiceDefinition<Settings, Stores extends ServiceStores = ServiceStores> {
  /** Opens the stores of the handlers, before the first request. */
  stores?(context: ServiceContext<Settings>, serving: Serving): Promise<Stores>
  /** The handlers by name, over the real sources. */
  handlers(context: HandlerContext<Settings, Stores>): HandlerMap | Promise<HandlerMap>
  /** Reads the service's own environment variables, once. Errors go to `variables.problem`. */
  env?(variables: Variables): Settings
  /** Environment variables that hold the public base address of an MCP server, by the name of the server. */
  readonly mcpUrls?: Readonly<Record<string, string>>
  /** Commands that are added to those of `ratecard`. */
  readonly commands?: readonly ServiceCommand<Settings>[]
  /** Starts local replacements for the outside sources, for `serve --offline`. */
  standIns?(context: HandlerContext<Settings, Stores>): Promise<StandIns>
  /** What became of the requests to each source in this process, by its key in the catalog. */
  readonly sources?: () => ReadonlyMap<string, SourceFigures>
  /**
   * Arguments by handler with which `doctor --sources` asks the sources that the examples of the catalog do not reach. All
   * parameters are given.
   */
  readonly probes?: Probes
}

export type Probes = Readonly<Record<string, readonly JsonObject[]>>

export interface ServiceContext<Settings> {
  readonly settings: Settings
  /** `BASE_URL`. */
  readonly baseUrl: string | undefined
  /** `DATA_DIR`. */
  readonly dataDir: string
  /** Version of ratecard. */
  readonly version: string
}

/** What handlers are made with. */
export interface HandlerContext<Settings, Stores extends ServiceStores> extends ServiceContext<Settings> {
  /**
   * What `stores` has opened, with whatever members it has. Must be called when a handler runs: stores open after the
   * handlers are known.
   */
  readonly stores: () => Stores
}

/** Environment variables; an empty value counts as unset. */
export interface Variables {
  text(name: string): string | undefined
  /** An http or https address, without slashes at its end. */
  url(name: string): string | undefined
  /** The parts between commas. */
  list(name: string): string[]
  /** The value never appears in a message or log. Names with KEY, TOKEN, SECRET or PASSWORD need no call. */
  conceal(name: string): void
  /** Reports an error: the sentence follows the name. Commands end with exit code 78 after all errors are reported. */
  problem(name: string, sentence: string): void
}

export interface StandIns {
  readonly handlers: HandlerMap
  /** The sources that are replaced, by their key in the catalog: they need no credentials. */
  readonly sources: readonly string[]
  stop(): Promise<void>
}

/** How a catalog is served. */
export interface Serving {
  /** The handlers of the catalog. */
  readonly handlers: readonly string[]
  readonly dataDir: string
  readonly payments: 'sandbox' | 'real'
  readonly sources: 'live' | 'stand-ins'
  /** Whether another process of this server runs until its requests are answered, and closes its stores then. */
  readonly replaces: boolean
}

export interface ServiceStores {
  /** For the operator: which stores are open, and which are not. */
  readonly lines: readonly string[]
  /** Handlers that this process cannot serve, with the reason: they answer 503 `not_configured`. */
  readonly unavailable: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** What became of the requests to one outside source since the process started. */
export interface SourceFigures {
  readonly asked: number
  /**
   * Requests without a usable answer: the source was unreachable, too late, limiting or failing, or its answer could
   * not be read.
   */
  readonly failed: number
  /** Answers in another form than the one that is read. Not counted as failed. */
  readonly drifted: number
  /** Rows and fields that could not be read and were left out of answers that were used. */
  readonly skipped: number
  /** Number of unexpected values by field and kind: `items/#/price: type`. */
  readonly fields: ReadonlyMap<string, number>
  /** `where` names fields, never their values. */
  readonly lastDrift: { readonly at: Date; readonly where: string } | undefined
}

export interface CommandOption {
  /** Placeholder of its value in the help text; a flag without a value has none. */
  readonly value?: string
  /** Whether the value may be left out: then it follows an equals sign, and is empty without one. */
  readonly optional?: boolean
  /** One letter that may stand for the name: `-X`. */
  readonly short?: string
  /** Whether it may be given several times. */
  readonly multiple?: boolean
  readonly text: string
}

/** How a command is called. */
export interface CommandLine {
  /** One word, or two where commands belong together: `payments list`. */
  readonly name: string
  readonly summary: string
  /** The arguments besides options, as help shows them: `<required>` or `[optional]`. */
  readonly operands: readonly string[]
  readonly options: Readonly<Record<string, CommandOption>>
  readonly examples: readonly string[]
}

export interface ServiceCommand<Settings> extends CommandLine {
  /** Resolves to the exit code. */
  run(call: ServiceCall<Settings>): Promise<number>
}

export interface ServiceCall<Settings> {
  readonly positionals: readonly string[]
  readonly flags: Flags
  readonly terminal: Terminal
  readonly context: ServiceContext<Settings>
  /** The error to throw for a wrong command line: it ends the command with its usage and exit code 64. */
  readonly misuse: (message: string) => Error
  /** Rows in aligned columns for a person, with tabs between the cells for a program. */
  readonly table: (rows: readonly (readonly string[])[]) => string
}

export interface Flags {
  readonly text: (name: string) => string | undefined
  readonly given: (name: string) => boolean
  /** The values of an option that may be given several times. */
  readonly all: (name: string) => readonly string[]
}

export interface Terminal {
  /** Results: stdout. */
  readonly out: (line: string) => void
  /** Progress and logs: stderr. */
  readonly err: (line: string) => void
  /** Reader of stdout: a person gets short columns, a program complete values. */
  readonly reader: 'person' | 'program'
  /** Who reads stderr. */
  readonly logReader: 'person' | 'program'
  /** The state of a long run, in one line that the next one replaces; shown to a person only. */
  readonly progress: (line: string) => void
}

/**
 * Gives a service definition its types.
 *
 * @example
 * import { defineService } from 'ratecard/service'
 *
 * export const service = defineService({
 *   env: (variables) => ({ greeting: variables.text('GREETING') ?? 'Hello' }),
 *   // Before the handlers, so that the compiler knows what they get.
 *   stores: async () => ({ visits: new Map<string, number>(), lines: [], unavailable: {}, close: async () => {} }),
 *   handlers: ({ settings, stores }) => ({
 *     hello: async ({ name }: { readonly name: string }) => {
 *       const { visits } = stores()
 *       visits.set(name, (visits.get(name) ?? 0) + 1)
 *       return { source: [], body: { text: `${settings.greeting} ${name}`, visits: visits.get(name) ?? 0 } }
 *     },
 *   }),
 * })
 */
export function defineService<Settings, Stores extends ServiceStores = ServiceStores>(
  definition: ServiceDefinition<Settings, Stores>,
): ServiceDefinition<Settings, Stores> {
  return definition
}

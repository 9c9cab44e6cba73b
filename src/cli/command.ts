import type { AllFigures, HandlerMap } from '../engine/index.ts'
import type { Env } from '../env.ts'

export interface Option {
  /** What stands for its value in the help text; a flag without a value has none. */
  readonly value?: string
  /** Whether it may be given several times. */
  readonly multiple?: boolean
  readonly text: string
}

/** A row in the table of `commands.ts`. */
export interface Command {
  /** One word, or two where commands belong together: `payments list`. */
  readonly name: string
  readonly summary: string
  /** The arguments besides options, as help shows them: `<required>` or `[optional]`. */
  readonly operands: readonly string[]
  readonly options: Readonly<Record<string, Option>>
  readonly examples: readonly string[]
  /** Resolves to the exit code. */
  readonly run: (call: Call) => Promise<number>
}

/** Everything a command may use: it reads no ambient state. */
export interface Call {
  readonly positionals: readonly string[]
  readonly flags: Flags
  readonly env: Env
  readonly terminal: Terminal
  /** Loads the handlers and what stands in for outside services: a second of CPU, so only on demand. */
  readonly services: () => Promise<AppServices>
  /** Of this program. */
  readonly version: string
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
  /** Who reads stdout: a person sees short columns, a program gets whole values. */
  readonly reader: 'person' | 'program'
  /** Who reads stderr. */
  readonly logReader: 'person' | 'program'
  /** What a long run is at, in one line that gives way to the next; shown to a person only. */
  readonly progress: (line: string) => void
}

/** The command line is wrong: the message says which flag or word, and what it takes. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** The service behind the catalog, its stand-ins and its stores. */
export interface AppServices {
  /** The handlers over the real sources. */
  readonly handlers: () => HandlerMap
  /** The lists that names are looked up in. */
  readonly lists: () => Lists
  /** The handlers over stand-ins for every outside source: no network. */
  readonly startStandIns: () => Promise<StandIns>
  /** Opens what the handlers remember. Throws with the reason when another process has it. */
  readonly openMemories: (place: MemoryPlace, models: 'in use' | 'out of reach') => Promise<OpenMemories>
  /** Deletes what an address has written, also while another process has the place; resolves to how many. */
  readonly forgetMemories: (place: MemoryPlace, address: string) => Promise<number>
  /** How the sources of these handlers have done in this process. */
  readonly figures: AllFigures
  readonly openSandbox: (directory: string, baseUrl: string, log: (line: string) => void) => Promise<Sandbox>
  /** Lower-case addresses of every sandbox file below a directory, and the well-known development accounts. */
  readonly testAddresses: (directory: string) => Promise<ReadonlySet<string>>
}

/** Data that is fetched ahead of the questions about it. */
export interface Lists {
  /** Fetches every list that has an address; calls `progress` with the bytes received so far. */
  update(progress: (id: string, bytes: number) => void): Promise<readonly ListUpdate[]>
  /** How the lists on disk stand; nothing is fetched. */
  status(): Promise<readonly ListReport[]>
  close(): Promise<void>
}

/** Embedded files belong to one process; a PostgreSQL is shared. */
export type MemoryPlace =
  | { readonly kind: 'embedded'; readonly directory: string }
  | { readonly kind: 'postgres'; readonly url: string }

export interface OpenMemories {
  /** For people: what it is and where, and how texts are found. */
  readonly title: string
  /** Opens what has been used before, ahead of the first question. */
  warm(): Promise<void>
  upkeep(): Promise<MemoryUpkeep>
  close(): Promise<void>
}

/** What the operator does to the memories of all wallets. */
export interface MemoryUpkeep {
  /** Resolves to how many were put into the space of the embedder in use; calls `progress` after each batch. */
  reindex(progress: (done: number) => void): Promise<number>
  /** Deletes what an address has written on whatever chain; resolves to how many. */
  forget(address: string): Promise<number>
  /** All memories, or those of one address, in the order of writing. */
  records(address: string | undefined): AsyncIterable<MemoryRecord>
}

export interface MemoryRecord {
  readonly id: string
  /** Namespace: `eip155:0x…`, or with the chain, of a contract. */
  readonly wallet: string
  readonly text: string
  readonly tags: readonly string[]
  readonly created_at: string
  readonly embedder: string
}

export interface ListUpdate {
  readonly id: string
  readonly kind: 'updated' | 'unchanged' | 'failed'
  /** Why it failed, in words that go on after "the list". */
  readonly reason?: string
}

/** How a list stands, in the words of `data status --json`. */
export interface ListReport {
  readonly id: string
  readonly publisher: string
  /** There is an address for it, or a file of it. */
  readonly configured: boolean
  /** The variable that holds its address. */
  readonly variable: string
  readonly published_at: string | null
  readonly fetched_at: string | null
  readonly age_seconds: number | null
  readonly max_age_seconds: number
  readonly entries: number | null
  readonly sha256: string | null
  /** Why answers do not rely on it, in words that go on after its name; null when they do, or it is not configured. */
  readonly problem: string | null
}

/** Local answers in the place of outside sources. */
export interface StandIns {
  readonly handlers: HandlerMap
  /** What has one, by its key under `sources:` in the catalog. */
  readonly sources: readonly string[]
  stop(): Promise<void>
}

/** Local chains with play money, and who holds it. */
export interface Sandbox {
  readonly evm: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly settlerKey: `0x${string}`
    readonly payTo: string
  }
  readonly tempo: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly currency: string
    readonly recipient: string
    /** Text that signs the challenges; at least 32 bytes. */
    readonly secretKey: string
  }
  readonly ledgerDirectory: string
  stop(): Promise<void>
}

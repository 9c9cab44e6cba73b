import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../engine/index.ts'
import { StoreRefusal, type Database } from './database.ts'
import { openEmbedded } from './embedded.ts'
import type { Embedder } from './embedder.ts'
import { hold, type Hold } from './lock.ts'
import { MemoryStore } from './memory-store.ts'
import { openPostgres } from './postgres.ts'
import { migrate } from './schema.ts'

/** Where memories are kept. */
export type Place =
  | { readonly kind: 'embedded'; readonly directory: string }
  | { readonly kind: 'postgres'; readonly url: string }

interface Opened {
  readonly database: Database
  readonly embedder: Embedder
  /** Of a directory; a server of databases looks after itself. */
  readonly hold: Hold | undefined
}

/** The memories of this process: handlers ask for the store before it is there. */
export class Memories {
  #opened: Opened | undefined
  #ready: Promise<MemoryStore> | undefined

  /** Names the place for people. Throws `StoreRefusal` when another process holds it. Nothing is read yet. */
  async open(place: Place, embedder: Embedder): Promise<string> {
    if (place.kind === 'postgres') {
      const database = await openPostgres(place.url)
      this.#opened = { database, embedder, hold: undefined }
      return database.name
    }
    mkdirSync(place.directory, { recursive: true, mode: 0o700 })
    const held = await hold(join(place.directory, 'lock'))
    const database = openEmbedded(place.directory)
    this.#opened = { database, embedder, hold: held }
    return database.name
  }

  /** The store, once it is open; whoever asks after it could not be opened tries again. Throws `Failure`. */
  async store(): Promise<MemoryStore> {
    const opened = this.#opened
    if (opened === undefined)
      throw new Failure('not_configured', 'The memory was not in the catalog when the server was started')
    try {
      if (opened.hold?.held() === false) throw new StoreRefusal(LOST)
      this.#ready ??= ready(opened)
      return await this.#ready
    } catch (cause) {
      this.#ready = undefined
      throw new Failure('source_error', 'The memory store cannot be opened', { cause })
    }
  }

  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    this.#ready = undefined
    await opened?.database.close()
    opened?.hold?.release()
  }
}

const LOST = 'another process has taken the memory store over while this one stood still: restart it'

async function ready({ database, embedder }: Opened): Promise<MemoryStore> {
  await migrate(database)
  return new MemoryStore(database, embedder)
}

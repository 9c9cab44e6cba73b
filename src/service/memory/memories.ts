import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from 'ratecard/handler'
import { StoreRefusal, type Database } from './database.ts'
import { openEmbedded } from './embedded.ts'
import { serveForgetRequests } from './forget-requests.ts'
import type { Embedder } from './embedder.ts'
import { hold, type Hold } from './hold.ts'
import { MemoryStore } from './memory-store.ts'
import { openPostgres } from './postgres.ts'
import { migrate } from './migrations.ts'
import { Upkeep } from './upkeep.ts'

/** Location of the memories. */
export type Place =
  | { readonly kind: 'embedded'; readonly directory: string }
  | { readonly kind: 'postgres'; readonly url: string }

interface Opened {
  readonly database: Database
  readonly embedder: Embedder
  /** Lock of a directory; a database server needs none. */
  readonly hold: Hold | undefined
  /** Whether there were no files yet. */
  readonly fresh: boolean
  readonly stop: () => void
}

/** The memories of this process: handlers ask for the store before it is there. */
export class Memories {
  #opened: Opened | undefined
  #ready: Promise<MemoryStore> | undefined
  #opening: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** Names the place for people. Throws `StoreRefusal` when another process holds it. Nothing is read yet. */
  async open(place: Place, embedder: Embedder): Promise<string> {
    if (place.kind === 'postgres') {
      const database = await openPostgres(place.url)
      this.#opened = { database, embedder, hold: undefined, fresh: false, stop: () => undefined }
      return database.name
    }
    mkdirSync(place.directory, { recursive: true, mode: 0o700 })
    const held = await hold(join(place.directory, 'lock'))
    const fresh = !existsSync(join(place.directory, 'postgres'))
    const database = openEmbedded(place.directory)
    const forget = async (address: string): Promise<number> => (await this.upkeep()).forget(address)
    const stop = serveForgetRequests(place.directory, forget)
    this.#opened = { database, embedder, hold: held, fresh, stop }
    return database.name
  }

  /** Opens a place that another process is about to release; who asks for the store waits. */
  openWhenFree(place: Place, embedder: Embedder): void {
    const open = async (): Promise<void> => {
      for (let waited = 0; !this.#isClosed; waited += RETRY_MS) {
        try {
          await this.open(place, embedder)
          return
        } catch (fault) {
          if (!(fault instanceof StoreRefusal) || waited > RELEASED_MS) throw fault
          await delay(RETRY_MS)
        }
      }
    }
    this.#opening = open()
    this.#opening.catch(() => undefined)
  }

  /** The store, once it is open; a request after a failed attempt opens it again. Throws `Failure`. */
  async store(): Promise<MemoryStore> {
    try {
      await this.#opening
      if (this.#opened === undefined)
        throw new Failure('not_configured', 'The memory was not in the catalog when the server was started')
      return await this.#store(this.#opened)
    } catch (cause) {
      if (cause instanceof Failure) throw cause
      throw new Failure('source_error', 'The memory store cannot be opened', { cause })
    }
  }

  /**
   * Opens a store that has been used before, so that nobody has to wait for it. A new one is made when it is first needed:
   * that takes seconds and half a gigabyte, and many servers never need it. Throws what hinders it, in words for the operator.
   */
  async warm(): Promise<void> {
    if (this.#opened?.fresh === false) await this.#store(this.#opened)
  }

  /** Throws what hinders it, in words for the operator. */
  async upkeep(): Promise<Upkeep> {
    if (this.#opened === undefined) throw new Error('the memory store is not open')
    await migrate(this.#opened.database)
    return new Upkeep(this.#opened.database, this.#opened.embedder)
  }

  async #store({ database, embedder, hold: held }: Opened): Promise<MemoryStore> {
    if (held?.held() === false) throw new StoreRefusal(LOST)
    this.#ready ??= migrate(database).then(() => new MemoryStore(database, embedder))
    try {
      return await this.#ready
    } catch (fault) {
      this.#ready = undefined
      throw fault
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening.catch(() => undefined)
    const opened = this.#opened
    this.#opened = undefined
    this.#ready = undefined
    opened?.stop()
    await opened?.database.close()
    opened?.hold?.release()
  }
}

const RETRY_MS = 100
/** As long as a process answers requests in flight. */
const RELEASED_MS = 90_000

const LOST = 'another process has taken the memory store over while this one stood still: restart it'

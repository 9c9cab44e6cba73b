import type { Database } from './database.ts'
import { toLiteral, type Embedder } from './embedder.ts'
import { readNumber, readText, readTexts, readTime } from './database-row.ts'

/** A memory with all that is known of it, as it is exported for an operator. */
export interface MemoryRecord {
  readonly id: string
  readonly wallet: string
  readonly text: string
  readonly tags: readonly string[]
  readonly created_at: string
  readonly embedder: string
}

/** Texts that are embedded, or read, at once. */
const BATCH = 32
/** $1: an address in lower case; on any chain, and without one. */
const OF_ADDRESS = `wallet ~ ('^eip155:([0-9]+:)?' || $1 || '$')`

/** What the operator does to the memories of all wallets. */
export class Upkeep {
  readonly #database: Database
  readonly #embedder: Embedder

  /** The database has the tables of `migrate`. */
  constructor(database: Database, embedder: Embedder) {
    this.#database = database
    this.#embedder = embedder
  }

  /**
   * Puts the memories that another embedder has placed into the space of this one; resolves to their number. It may be
   * broken off and begun again, and a server may go on meanwhile.
   */
  async reindex(progress: (done: number) => void): Promise<number> {
    const { name } = this.#embedder
    let [done, place] = [0, 0]
    for (;;) {
      const rows = await this.#database.query(
        'select place, text from memories where embedder <> $1 and place > $2::bigint order by place limit $3::int',
        [name, place, BATCH],
      )
      const last = rows.at(-1)
      if (last === undefined) return done
      const texts = rows.map((row) => readText(row, 'text'))
      const vectors = await this.#embedder.embed(texts, new AbortController().signal)
      await this.#database.query(
        `update memories set embedder = $1, embedding = given.embedding::vector
         from unnest($2::bigint[], $3::text[]) as given (place, embedding) where memories.place = given.place`,
        [name, rows.map((row) => String(readNumber(row, 'place'))), vectors.map(toLiteral)],
      )
      place = readNumber(last, 'place')
      done += rows.length
      progress(done)
    }
  }

  /** Deletes everything that an address has written, on every chain, including unpaid writes. */
  async forget(address: string): Promise<number> {
    const [row] = await this.#database.query(
      `with pending as (delete from pending_memories where ${OF_ADDRESS}),
            kept as (delete from memories where ${OF_ADDRESS} returning 1)
       select count(*) as number from kept`,
      [address.toLowerCase()],
    )
    return readNumber(row, 'number')
  }

  /** All memories, or those of one address, in the order of writing. */
  async *records(address: string | undefined): AsyncGenerator<MemoryRecord> {
    for (let place = 0; ;) {
      const rows = await this.#database.query(
        `select place, id, wallet, text, tags, created_at, embedder from memories
         where place > $2::bigint and ($1::text is null or ${OF_ADDRESS}) order by place limit $3::int`,
        [address?.toLowerCase() ?? null, place, BATCH],
      )
      for (const row of rows)
        yield {
          id: readText(row, 'id'),
          wallet: readText(row, 'wallet'),
          text: readText(row, 'text'),
          tags: readTexts(row, 'tags'),
          created_at: readTime(row, 'created_at').toISOString(),
          embedder: readText(row, 'embedder'),
        }
      const last = rows.at(-1)
      if (last === undefined) return
      place = readNumber(last, 'place')
    }
  }
}

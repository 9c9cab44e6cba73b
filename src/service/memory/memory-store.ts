import { createHash } from 'node:crypto'
import { Failure, InvalidParameter } from 'ratecard/handler'
import { DatabaseError, type Database, type Row, type Value } from './database.ts'
import { embedOne, toLiteral, type Embedder } from './embedder.ts'
import { readNumber, readText, readTexts, readTime } from './database-row.ts'
import { HELD, PAGE, SEARCH, USAGE } from './sql.ts'
import { relatedTerms } from './related.ts'
import { termsOf } from './terms.ts'

/** What one wallet may keep. */
export const QUOTA = { memories: 100_000, bytes: 100_000_000 } as const

/** A memory that is to be kept. */
export interface Draft {
  readonly wallet: string
  readonly text: string
  readonly tags: readonly string[]
  /** Idempotency key of the wallet: a text is stored under it once. */
  readonly key: string | undefined
}

export interface Memory {
  readonly id: string
  readonly text: string
  readonly tags: readonly string[]
  readonly createdAt: Date
}

export interface Written {
  readonly id: string
  readonly createdAt: Date
  readonly bytes: number
  /** Whether it was there before, under the same key. */
  readonly repeated: boolean
}

export interface Question {
  readonly wallet: string
  readonly query: string
  readonly most: number
  /** All of them; none: any. */
  readonly tags: readonly string[]
  readonly since: Date | undefined
}

export interface Hit extends Memory {
  /** Above 0, up to 1: how many of the question’s words it has, rare ones weighing more, and the nearness of the vectors. */
  readonly score: number
}

export interface Page {
  readonly memories: readonly Memory[]
  /** Start of the next page; undefined after the last. */
  readonly next: string | undefined
  /** Memories on the pages after this one. */
  readonly remaining: number
}

export interface Usage {
  readonly memories: number
  readonly bytes: number
  /** Undefined when there are none. */
  readonly span: { readonly first: Date; readonly last: Date } | undefined
}

/** Memories of all wallets. A wallet is the first argument of everything, and nothing reaches across. */
export class MemoryStore {
  readonly embedder: Embedder
  readonly #database: Database
  /** Writes of this process on their way, by payment. */
  readonly #writing = new Map<string, Promise<unknown>>()

  /** The database has the tables of `migrate`. */
  constructor(database: Database, embedder: Embedder) {
    this.#database = database
    this.embedder = embedder
  }

  /**
   * Writes a memory down under its payment; nobody finds it before `commit`. Throws `quota_exceeded`, `InvalidParameter` for
   * a key that was used for another text, and what the embedder throws: nothing is written then. The same payment writes the
   * same memory again.
   */
  async prepare(payment: string, draft: Draft, at: Date, signal: AbortSignal): Promise<Written> {
    const id = idOf(draft.key === undefined ? ['payment', payment] : ['key', draft.wallet, draft.key])
    const [earlier] = await this.#query('select text, created_at, bytes from memories where id = $1', [id])
    if (earlier !== undefined && readText(earlier, 'text') !== draft.text)
      throw new InvalidParameter(
        'idempotency_key',
        'idempotency_key was used for another text of this wallet',
      )
    if (earlier !== undefined)
      return {
        id,
        createdAt: readTime(earlier, 'created_at'),
        bytes: readNumber(earlier, 'bytes'),
        repeated: true,
      }
    const bytes = Buffer.byteLength(JSON.stringify({ text: draft.text, tags: draft.tags }))
    await this.#admit(payment, draft.wallet, bytes)
    const vector = await embedOne(this.embedder, draft.text, signal)
    // The caller learns of the timeout and the payment is aborted: nothing may be written afterwards.
    signal.throwIfAborted()
    const { wallet, text, tags } = draft
    const values = [payment, id, wallet, text, tags, [...new Set(termsOf(text))], this.embedder.name]
    const writing = this.#query(
      `insert into pending_memories (payment, id, wallet, text, tags, terms, embedder, embedding, bytes, created_at)
       values ($1, $2, $3, $4, $5::text[], $6::text[], $7, $8::vector, $9, $10)
       on conflict (payment) do update set payment = excluded.payment returning created_at`,
      [...values, toLiteral(vector), bytes, at.toISOString()],
    )
    this.#writing.set(payment, writing)
    try {
      const [row] = await writing
      return { id, createdAt: readTime(row, 'created_at'), bytes, repeated: false }
    } finally {
      this.#writing.delete(payment)
    }
  }

  /** From now on the memory is found. Without effect when nothing was written under the payment. */
  async commit(payment: string): Promise<void> {
    await this.#query(
      `with paid as (delete from pending_memories where payment = $1 returning *)
       insert into memories (id, wallet, text, tags, terms, embedder, embedding, bytes, created_at)
       select id, wallet, text, tags, terms, embedder, embedding, bytes, created_at from paid
       on conflict (id) do nothing`,
      [payment],
    )
  }

  /** What was written under the payment goes. */
  async abort(payment: string): Promise<void> {
    // On another connection than the write, this could come before it.
    await this.#writing.get(payment)?.catch(() => undefined)
    await this.#query('delete from pending_memories where payment = $1', [payment])
  }

  /** The best matches first; what has neither a word in common nor a near vector is no match. */
  async search({ wallet, query, most, tags, since }: Question, signal: AbortSignal): Promise<readonly Hit[]> {
    const vector = await embedOne(this.embedder, query, signal)
    const asked = askedTerms(query)
    const rows = await this.#query(SEARCH, [
      wallet,
      toLiteral(vector),
      asked.map(({ term }) => term),
      most,
      this.embedder.name,
      tags,
      since?.toISOString() ?? null,
      vector.length,
      asked.map(({ word }) => String(word)),
      asked.map(({ share }) => String(share)),
      this.embedder.weight,
      this.embedder.floor,
    ])
    return rows.map((row) => ({ ...memoryOf(row), score: readNumber(row, 'score') }))
  }

  /** In the order of writing, from the beginning or from where the page before has ended, up to so many bytes. */
  async page(wallet: string, after: string, bytes: number): Promise<Page> {
    const rows = await this.#query(PAGE, [wallet, after, bytes])
    const last = rows.at(-1)
    const remaining = last === undefined ? 0 : readNumber(last, 'remaining')
    return { memories: rows.map(memoryOf), next: remaining > 0 ? placeOf(last) : undefined, remaining }
  }

  async usage(wallet: string): Promise<Usage> {
    const [row] = await this.#query(USAGE, [wallet])
    const memories = readNumber(row, 'memories')
    const span =
      memories === 0 ? undefined : { first: readTime(row, 'first_at'), last: readTime(row, 'last_at') }
    return { memories, bytes: readNumber(row, 'bytes'), span }
  }

  /** Totals of all wallets. */
  async totals(): Promise<{ readonly memories: number; readonly wallets: number }> {
    const sql = 'select count(*) as memories, count(distinct wallet) as wallets from memories'
    const [row] = await this.#query(sql, [])
    return { memories: readNumber(row, 'memories'), wallets: readNumber(row, 'wallets') }
  }

  /** Deletes one memory of a wallet; resolves to how many there were of this id. */
  async delete(wallet: string, id: string): Promise<number> {
    const sql = 'delete from memories where wallet = $1 and id = $2::uuid returning id'
    return (await this.#query(sql, [wallet, id])).length
  }

  /** Deletes all memories of a wallet, also those that are not paid for yet; resolves to how many there were to be found. */
  async clear(wallet: string): Promise<number> {
    const [row] = await this.#query(
      `with pending as (delete from pending_memories where wallet = $1),
            kept as (delete from memories where wallet = $1 returning 1)
       select count(*) as number from kept`,
      [wallet],
    )
    return readNumber(row, 'number')
  }

  /** Two writes at once may both pass: a wallet holds a few more then. */
  async #admit(payment: string, wallet: string, more: number): Promise<void> {
    const [row] = await this.#query(HELD, [wallet, payment])
    const [memories, bytes] = [readNumber(row, 'memories') + 1, readNumber(row, 'bytes') + more]
    if (memories <= QUOTA.memories && bytes <= QUOTA.bytes) return
    throw new Failure('quota_exceeded', QUOTA_SENTENCE)
  }

  async #query(sql: string, values: readonly Value[]): Promise<readonly Row[]> {
    try {
      return await this.#database.query(sql, values)
    } catch (cause) {
      if (!(cause instanceof DatabaseError)) throw cause
      throw new Failure('source_error', 'The memory store could not do it', { cause })
    }
  }
}

/** Words of a question that are looked up together with their related ones: more add nothing but work. */
const MOST_WORDS = 64

/** What the words of a question are found by: themselves, and what WordNet relates to them. */
function askedTerms(query: string): { term: string; word: number; share: number }[] {
  return [...new Set(termsOf(query))].flatMap((term, word) => [
    { term, word, share: 1 },
    ...(word < MOST_WORDS ? relatedTerms(term).map((related) => ({ ...related, word })) : []),
  ])
}

const QUOTA_SENTENCE = `A wallet keeps at most ${QUOTA.memories} memories, or ${QUOTA.bytes / 1_000_000} MB of them`

/** The same text gives the same id in every process. */
function idOf(parts: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  // RFC 9562 §5.8, version 8: of our own making.
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

function memoryOf(row: Row): Memory {
  return {
    id: readText(row, 'id'),
    text: readText(row, 'text'),
    tags: readTexts(row, 'tags'),
    createdAt: readTime(row, 'created_at'),
  }
}

function placeOf(row: Row | undefined): string {
  return String(readNumber(row, 'place'))
}

/** What a statement may be given: lists become arrays of the database. */
export type Value = string | number | null | readonly string[]

export type Row = Readonly<Record<string, unknown>>

/** One SQL for two engines: embedded or PostgreSQL. */
export interface Database {
  /** Name for operators: `embedded` or `PostgreSQL at db.example.com`. */
  readonly name: string
  /** One statement, which is carried out whole or not at all. Throws `DatabaseError`. */
  query(sql: string, values: readonly Value[]): Promise<readonly Row[]>
  /** Several statements without values, together whole or not at all. Throws `DatabaseError`. */
  run(script: string): Promise<void>
  close(): Promise<void>
}

/** The database has refused, or cannot be reached. Its own words are for the operator, never for callers. */
export class DatabaseError extends Error {
  /** SQLSTATE, or what the system calls it: `ECONNREFUSED`. */
  readonly condition: string | undefined

  constructor(condition: string | undefined, cause: unknown) {
    super(`the memory store failed${condition === undefined ? '' : ` (${condition})`}`, { cause })
    this.name = 'DatabaseError'
    this.condition = condition
  }
}

/** The store cannot be used: the message tells the operator what to do. */
export class StoreRefusal extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreRefusal'
  }
}

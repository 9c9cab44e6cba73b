import { DatabaseError, type Database } from './database.ts'

/** Statements at once; more wait for their turn. */
const CONNECTIONS = 10
const CONNECT_MS = 5_000
/** A reindex of one batch and an export of the largest wallet stay far below it. */
const STATEMENT_MS = 30_000

/** PostgreSQL with pgvector. Nothing is sent before the first statement. */
export async function openPostgres(url: string): Promise<Database> {
  const { Pool } = await import('pg')
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    application_name: 'ratecard',
  })
  // An idle connection was lost: the next statement opens another.
  pool.on('error', () => undefined)
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (fault) {
      throw new DatabaseError(conditionOf(fault), fault)
    }
  }
  return {
    name: `PostgreSQL at ${new URL(url).host}`,
    query: (sql, values) =>
      attempt(async () => (await pool.query<Record<string, unknown>>(sql, [...values])).rows),
    run: (script) =>
      attempt(async () => {
        // Several statements in one message are one transaction.
        await pool.query(script)
      }),
    close: () => pool.end(),
  }
}

function conditionOf(fault: unknown): string | undefined {
  const code: unknown =
    typeof fault === 'object' && fault !== null && 'code' in fault ? fault.code : undefined
  return typeof code === 'string' && /^[0-9A-Z_]+$/.test(code) ? code : undefined
}

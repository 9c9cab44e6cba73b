import { DatabaseError, StoreRefusal, type Database } from './database.ts'
import { readNumber } from './database-row.ts'

/**
 * One script a version, in their order; those that were carried out are in `memory_schema`.
 *
 * A vector has no fixed size, so that another embedder needs no other table. There is no index of vectors: all memories of
 * one wallet are compared, which is exact, and fast up to some ten thousand.
 */
const MIGRATIONS: readonly string[] = [
  `create table memories (
     place bigint generated always as identity primary key,
     id uuid not null unique,
     wallet text not null,
     text text not null,
     tags text[] not null,
     terms text[] not null,
     embedder text not null,
     embedding vector not null,
     bytes integer not null,
     created_at timestamptz not null
   );
   create index memories_of_wallet on memories (wallet, place) include (bytes);
   create table pending_memories (
     payment text primary key,
     id uuid not null,
     wallet text not null,
     text text not null,
     tags text[] not null,
     terms text[] not null,
     embedder text not null,
     embedding vector not null,
     bytes integer not null,
     created_at timestamptz not null
   );
   create index pending_memories_of_wallet on pending_memories (wallet) include (bytes);`,
]

/** Any number that nothing else in the database uses; processes that start together wait here for each other. */
const TURN = 'select pg_advisory_xact_lock(4021402)'

/** Brings the tables to this version. Throws `StoreRefusal` when that cannot be done. */
export async function migrate(database: Database): Promise<void> {
  await addVectors(database)
  await database.run(`${TURN}; create table if not exists memory_schema (version integer primary key)`)
  const rows = await database.query('select coalesce(max(version), 0) as version from memory_schema', [])
  const version = readNumber(rows[0], 'version')
  if (version > MIGRATIONS.length)
    throw new StoreRefusal(
      `the memory store has format ${version} and this version knows ${MIGRATIONS.length}: it was written by a newer one. Start that, or restore a backup`,
    )
  for (const [done, migration] of MIGRATIONS.entries())
    if (done >= version) await database.run(step(done + 1, migration))
}

function step(version: number, migration: string): string {
  return `${TURN}; do $step$ begin
    if not exists (select 1 from memory_schema where version = ${version}) then
      ${migration}
      insert into memory_schema values (${version});
    end if;
  end $step$`
}

/** Errors of the extension: not installed on the machine, or not permitted for this user. */
const MISSING: ReadonlySet<string | undefined> = new Set(['0A000', '58P01', '42501'])

async function addVectors(database: Database): Promise<void> {
  try {
    await database.run(`${TURN}; create extension if not exists vector`)
  } catch (fault) {
    if (!(fault instanceof DatabaseError) || !MISSING.has(fault.condition)) throw fault
    throw new StoreRefusal(
      `${database.name} has no pgvector: install it there (Debian: postgresql-17-pgvector) and let a superuser run "create extension vector" once`,
    )
  }
}

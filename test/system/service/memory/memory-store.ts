import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openEmbedded } from '../../../../src/service/memory/embedded.ts'
import { openPostgres } from '../../../../src/service/memory/postgres.ts'
import { testMemoryStore, type Findings } from '../../../contract/memory-store.ts'
import { postgresAbsence, startPostgres, wireDatabase } from '../../../support/service/postgres.ts'

let first: Findings | undefined

/** Who moves from one engine to the other gets the same answers. */
function compare(t: Test, findings: Findings): void {
  first ??= findings
  t.strictSame(findings.places, first.places, 'the same memories in the same order')
  const differences = findings.scores.flatMap((scores, question) =>
    scores.map((score, place) => Math.abs(score - (first?.scores[question]?.[place] ?? NaN))),
  )
  t.ok(
    differences.every((difference) => difference < 1e-6),
    'with the same scores',
  )
}

testMemoryStore(
  'the embedded database',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ratecard-memory-'))
    const database = openEmbedded(directory)
    t.teardown(async () => {
      await database.close()
      rmSync(directory, { recursive: true, force: true })
    })
    return database
  },
  compare,
)

const absence = postgresAbsence()
if (absence !== undefined)
  t.comment(`the embedded one stands in for PostgreSQL, behind its protocol: ${absence}`)

testMemoryStore(
  'PostgreSQL',
  async (t) => {
    const server = await (absence === undefined ? startPostgres() : wireDatabase())
    const database = await openPostgres(server.url)
    t.teardown(async () => {
      await database.close()
      await server.stop()
    })
    return database
  },
  compare,
)

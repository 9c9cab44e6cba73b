import { loadServed } from '../engine/app/catalog-thread.ts'
import type { KeptCatalog } from '../engine/app/kept-revisions.ts'
import { CatalogError } from '../engine/catalog/issue.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { Call } from './command.ts'
import { keptRevisions } from './open-kept-revisions.ts'
import { handlersFor } from './load-handlers.ts'
import { baseUrlOf } from './payment-config.ts'
import { columnsFor } from './terminal-text.ts'

/** Lists the revisions that the server has served and kept. */
export async function revisions(call: Call): Promise<number> {
  const { flags, env, terminal } = call
  const kept = keptRevisions(flags.text('data-dir') ?? env.dataDir)
  const rollback = kept.rollback()
  const rows = kept.list().map(({ revision, kept_at }) => ({
    revision,
    kept_at,
    rolled_back_to: revision === rollback?.revision,
  }))
  if (flags.given('json')) terminal.out(JSON.stringify(rows, undefined, 2))
  else if (rows.length === 0) terminal.err('no revision is kept here: a server keeps those that it serves')
  else
    terminal.out(
      columnsFor(
        terminal,
        rows.map(({ revision, kept_at, rolled_back_to }) => [
          revision,
          kept_at,
          rolled_back_to ? 'served in place of the catalog file' : '',
        ]),
      ),
    )
  return 0
}

/** Serves a kept revision until the catalog file changes. */
export async function rollback(call: Call): Promise<number> {
  const { positionals, flags, env, terminal } = call
  const [wanted] = positionals
  if (wanted === undefined)
    throw new UsageError('missing argument: a revision, as "ratecard revisions" lists them')
  const kept = keptRevisions(flags.text('data-dir') ?? env.dataDir)
  const catalog = kept.find(wanted)
  if (catalog === undefined) {
    terminal.err(`ratecard rollback: revision ${wanted} is not kept here: see "ratecard revisions"`)
    return 1
  }
  const file = flags.text('catalog') ?? env.catalog
  const handlers = Object.keys(await handlersFor(call, file))
  const load = (place: string | KeptCatalog): string | undefined => {
    try {
      return loadServed(place, { handlers }, baseUrlOf(env)).catalog.revision
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      if (place !== file) terminal.err(fault.message)
      return undefined
    }
  }
  if (load(catalog) === undefined) {
    terminal.err(`ratecard rollback: revision ${wanted} cannot be served any more`)
    return 1
  }
  const current = load(file)
  const isCurrent = current === wanted
  if (isCurrent) kept.endRollback()
  else kept.rollBack({ revision: wanted, instead_of: current ?? null })
  if (flags.given('json')) {
    const result = {
      revision: wanted,
      instead_of: isCurrent ? null : (current ?? null),
      rolled_back: !isCurrent,
    }
    terminal.out(JSON.stringify(result, undefined, 2))
  } else if (isCurrent) terminal.out(`${file} is revision ${wanted}: it is served`)
  else terminal.out(`revision ${wanted} is served by a running server within seconds, until ${file} changes`)
  return 0
}

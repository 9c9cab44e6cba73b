import { compact, type JsonObject } from '../json.ts'
import type { Revision } from './revision.ts'

/** What became of the questions to one outside source since the process started. */
export interface SourceFigures {
  readonly asked: number
  /** Without an answer: unreachable, too late, limited, an error, or none that could be read. */
  readonly failed: number
  /** Answered in another form than the one it is read by. Not counted as failed. */
  readonly drifted: number
  /** `where` names fields, never what stood in them. */
  readonly lastDrift: { readonly at: Date; readonly where: string } | undefined
}

/** By the key of the source in the catalog. */
export type AllFigures = () => ReadonlyMap<string, SourceFigures>

const NONE: SourceFigures = { asked: 0, failed: 0, drifted: 0, lastDrift: undefined }

/** The live `/status.json`: routes that cannot be served now, and how the sources do. */
export function status({ catalog, facts, table }: Revision, figures: AllFigures): JsonObject {
  const { service, sources } = catalog
  const seen = figures()
  const used = new Set(table.served.flatMap(({ route }) => route.operation.sources))
  return {
    service: service.name,
    version: service.version,
    revision: catalog.revision,
    sandbox: facts.sandbox,
    unavailable: table.served
      .filter(({ route, readiness }) => route.kind === 'paid' && readiness !== 'ready')
      .map(({ route, readiness }) => ({ path: route.path, reason: readiness })),
    sources: Object.entries(sources)
      .filter(([name]) => used.has(name) || seen.has(name))
      .map(([name, { title }]) => ({ name, title, ...sourceRow(seen.get(name) ?? NONE) })),
  }
}

function sourceRow({ asked, failed, drifted, lastDrift }: SourceFigures): JsonObject {
  const last = lastDrift && { at: lastDrift.at.toISOString(), where: lastDrift.where }
  return compact({ asked, failed, drifted, last_drift: last })
}

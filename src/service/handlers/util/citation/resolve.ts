import { Failure, type Context, type Source, type Warning } from 'ratecard/handler'
import { cacheIfComplete } from '../../../sources/cache-if-complete.ts'
import { isWork, type Work } from '../../../sources/works/work.ts'

/** Knows works by their DOIs. `find` gives undefined for one it does not know, and throws `Failure` when it cannot tell. */
export interface Agency {
  readonly source: Source
  readonly find: (doi: string, signal: AbortSignal) => Promise<Work | undefined>
}

export interface Agencies {
  readonly crossref: Agency
  readonly datacite: Agency
  readonly doiResolver: Agency
}

const AGENCIES = ['crossref', 'datacite', 'doiResolver'] as const
const NAMES = { crossref: 'crossref', datacite: 'datacite', doiResolver: 'doi.org' } as const
type Name = keyof typeof NAMES

export interface Resolved {
  readonly work: Work
  readonly source: Source
  readonly resolvedBy: string
  readonly at: Date
  readonly warnings: readonly Warning[]
}

/** For all spellings of a DOI, also for unknown ones. Not when an agency was skipped. */
const KEPT = { ttl: 60 * 60_000, staleIfError: 0 }

type Found =
  { readonly by: Name; readonly work: Work; readonly silent: readonly Name[] } | { readonly by: null }

/**
 * The work with a DOI, from the first agency that knows it. A failing agency is skipped; but a DOI counts as unknown
 * only when all have answered. Throws `Failure`.
 */
export async function resolve(doi: string, agencies: Agencies, context: Context): Promise<Resolved> {
  const { value: found, at } = await cacheIfComplete(
    context,
    `citation/work/2/${doi}`,
    KEPT,
    isFound,
    (value) => value.by === null || value.silent.length === 0,
    (signal) => ask(doi, agencies, signal),
  )
  if (found.by === null) throw new Failure('not_found', `No agency describes a work with DOI '${doi}'`)
  const { by, work, silent } = found
  return {
    work,
    source: agencies[by].source,
    resolvedBy: NAMES[by],
    at,
    warnings: silent.map((name) => ({
      code: 'upstream_unavailable',
      message: `${agencies[name].source.name} did not answer, ${agencies[by].source.name} did`,
      source: NAMES[name],
    })),
  }
}

async function ask(doi: string, agencies: Agencies, signal: AbortSignal): Promise<Found> {
  const silent: Name[] = []
  let fault: Failure | undefined
  for (const by of AGENCIES) {
    try {
      const work = await agencies[by].find(doi, signal)
      if (work !== undefined) return { by, work, silent }
    } catch (cause) {
      if (!(cause instanceof Failure)) throw cause
      fault ??= cause
      silent.push(by)
    }
  }
  if (fault !== undefined) throw fault
  return { by: null }
}

function isFound(value: unknown): value is Found {
  if (typeof value !== 'object' || value === null || !('by' in value)) return false
  return value.by === null || ('work' in value && isWork(value.work) && 'silent' in value)
}

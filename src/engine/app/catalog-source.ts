import type { Catalog } from '../catalog/catalog.ts'
import { CatalogError, formatIssue, type Issue } from '../catalog/issue.ts'
import { markNow, type Mark } from '../catalog/load-catalog.ts'
import { type CatalogPlace, type CatalogReader, type LoadedHandlers, readAtStart } from './catalog-thread.ts'
import type { KeptRevisions } from './kept-revisions.ts'

export interface CatalogSourceSettings {
  readonly place: CatalogPlace
  readonly baseUrl: string
  /** Where revisions that were served are kept; undefined: nowhere. */
  readonly kept: KeptRevisions | undefined
  /** Takes warnings. */
  readonly log: (line: string) => void
  /** Called after each attempt to read the catalog file, with everything whose change has to be looked at. */
  readonly noteFiles: (files: ReadonlyMap<string, Mark>) => void
}

/** Where the revisions come from that are served: the catalog file, or one that was kept when it was served. */
export class CatalogSource {
  readonly #settings: CatalogSourceSettings
  /** The last revision that came from the file. */
  #fromFile: { readonly revision: string; readonly files: ReadonlyMap<string, Mark> } | undefined
  #warnings: readonly Issue[] = []

  constructor(settings: CatalogSourceSettings) {
    this.#settings = settings
  }

  /** Of the file as it was read last; none while it cannot be served. */
  get warnings(): readonly Issue[] {
    return this.#warnings
  }

  /** The revision to be served now. Rejects with `CatalogError`. */
  async read(reader: CatalogReader, loaded: LoadedHandlers): Promise<Catalog> {
    const { kept, log } = this.#settings
    const rollback = kept?.rollback()
    if (kept === undefined || rollback === undefined) return this.#readFile(reader, loaded)
    const found = await this.#readFile(reader, loaded).catch(catalogErrorOf)
    if (!(found instanceof CatalogError) && found.revision !== rollback.instead_of) {
      kept.endRollback()
      return found
    }
    const earlier = await this.#readKept(kept, rollback.revision, reader, loaded)
    if (earlier === undefined) {
      log(`the rollback to revision ${rollback.revision} is over: it is not kept any more`)
      kept.endRollback()
      if (found instanceof CatalogError) throw found
      return found
    }
    log(`rolled back to revision ${earlier.revision}, until the catalog file changes`)
    return earlier
  }

  /** At the start: when the file cannot be served, the last revision that was served; `fault` says why. */
  async readAtStart(loaded: LoadedHandlers): Promise<{ catalog: Catalog; fault: CatalogError | undefined }> {
    const { kept } = this.#settings
    const read = await this.read(readAtStart, loaded).catch(catalogErrorOf)
    if (!(read instanceof CatalogError)) return { catalog: read, fault: undefined }
    for (const { revision } of kept?.list() ?? []) {
      if (kept === undefined) break
      // Handlers may have changed with the file: an earlier revision may lack its own.
      const catalog = await this.#readKept(kept, revision, readAtStart, loaded).catch(catalogErrorOf)
      if (catalog !== undefined && !(catalog instanceof CatalogError)) return { catalog, fault: read }
    }
    throw read
  }

  /** Keeps a revision that is being served, if it came from the file. */
  keep({ revision }: Catalog): void {
    const { kept, place } = this.#settings
    if (this.#fromFile?.revision === revision && typeof place === 'string')
      kept?.keep(revision, place, this.#fromFile.files)
  }

  async #readFile(reader: CatalogReader, loaded: LoadedHandlers): Promise<Catalog> {
    const { place, baseUrl, kept, log, noteFiles } = this.#settings
    const files = new Map<string, Mark>()
    this.#warnings = []
    const watched = kept === undefined ? [] : [[kept.rollbackFile, markNow(kept.rollbackFile)] as const]
    try {
      const { catalog, warnings, text } = await reader(place, loaded, baseUrl, files)
      const file = typeof place === 'string' ? place : 'catalog.yaml'
      this.#warnings = warnings
      for (const issue of warnings) log(formatIssue(issue, file, text))
      this.#fromFile = { revision: catalog.revision, files }
      return catalog
    } finally {
      noteFiles(new Map([...files, ...watched]))
    }
  }

  async #readKept(
    kept: KeptRevisions,
    revision: string,
    reader: CatalogReader,
    loaded: LoadedHandlers,
  ): Promise<Catalog | undefined> {
    const found = kept.find(revision)
    return found && (await reader(found, loaded, this.#settings.baseUrl, new Map())).catalog
  }
}

function catalogErrorOf(fault: unknown): CatalogError {
  if (fault instanceof CatalogError) return fault
  throw fault
}

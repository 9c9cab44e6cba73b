import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { ABSENT, markNow, type Mark } from '../catalog/load-catalog.ts'

/** A catalog that was served, with every file that it names, as they were then. */
export interface KeptCatalog {
  /** The name of its file, for messages. */
  readonly file: string
  readonly text: string
  /** The folder that its paths begin in. */
  readonly folder: string
  /** Content in base64 by absolute path. */
  readonly files: Readonly<Record<string, string>>
}

export interface KeptRevision {
  readonly revision: string
  /** When it was last taken from the catalog file, ISO 8601. */
  readonly kept_at: string
}

/** Another revision than that of the catalog file is served. */
export interface Rollback {
  readonly revision: string
  /** The revision of the catalog file that was not to be served any more; null: it could not be served. */
  readonly instead_of: string | null
}

const MOST_KEPT = 10
const ROLLBACK = 'rollback.json'
const REVISION_FILE = /^([\w-]+)\.revision\.json$/

/** The last revisions of a catalog that were served, in a folder of this machine. */
export class KeptRevisions {
  readonly #folder: string
  readonly #now: () => number

  constructor(folder: string, now: () => number) {
    this.#folder = folder
    this.#now = now
  }

  /** The file that says whether another revision is served; it need not exist. */
  get rollbackFile(): string {
    return join(this.#folder, ROLLBACK)
  }

  /** Newest first. */
  list(): readonly KeptRevision[] {
    return names(this.#folder)
      .flatMap((name) => {
        const [, revision] = REVISION_FILE.exec(name) ?? []
        if (revision === undefined) return []
        const { kept_at } = this.#read<KeptRevision>(name)
        return [{ revision, kept_at }]
      })
      .sort((one, other) => other.kept_at.localeCompare(one.kept_at))
  }

  /** Undefined when it is not kept. */
  find(revision: string): KeptCatalog | undefined {
    const name = `${revision}.revision.json`
    return names(this.#folder).includes(name) ? this.#read<KeptCatalog>(name) : undefined
  }

  /**
   * Keeps a revision that is served. `files`: everything that was read for it, with the mark from before; one that has changed
   * since belongs to the next revision, and nothing is kept.
   */
  keep(revision: string, catalogFile: string, files: ReadonlyMap<string, Mark>): void {
    const contents: Record<string, string> = {}
    for (const [path, mark] of files) {
      if (mark === ABSENT) continue
      contents[path] = readFileSync(path).toString('base64')
      if (markNow(path) !== mark) return
    }
    const path = resolve(catalogFile)
    const text = Buffer.from(contents[path] ?? '', 'base64').toString('utf8')
    if (text === '') return
    const kept_at = new Date(this.#now()).toISOString()
    const kept = { kept_at, file: basename(path), folder: dirname(path), text, files: contents }
    this.#write(`${revision}.revision.json`, kept)
    const rolledBackTo = this.rollback()?.revision
    for (const old of this.list().slice(MOST_KEPT))
      if (old.revision !== rolledBackTo) rmSync(join(this.#folder, `${old.revision}.revision.json`))
  }

  rollback(): Rollback | undefined {
    return names(this.#folder).includes(ROLLBACK) ? this.#read<Rollback>(ROLLBACK) : undefined
  }

  rollBack(rollback: Rollback): void {
    this.#write(ROLLBACK, rollback)
  }

  /** The catalog file is served again. */
  endRollback(): void {
    rmSync(this.rollbackFile, { force: true })
  }

  #read<T>(name: string): T {
    return JSON.parse(readFileSync(join(this.#folder, name), 'utf8'))
  }

  #write(name: string, content: unknown): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const path = join(this.#folder, name)
    writeFileSync(`${path}.${process.pid}.tmp`, JSON.stringify(content), { mode: 0o600 })
    renameSync(`${path}.${process.pid}.tmp`, path)
  }
}

function names(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Reads the files of a kept catalog by the names that it has for them. */
export function readerOfKept({ folder, files }: KeptCatalog): (name: string) => Buffer | undefined {
  return (name) => {
    const content = files[resolve(folder, name)]
    return content === undefined ? undefined : Buffer.from(content, 'base64')
  }
}

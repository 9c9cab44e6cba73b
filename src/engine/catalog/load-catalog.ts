import { type BigIntStats, existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Catalog } from './catalog.ts'
import { check } from './check.ts'
import { compile } from './compile.ts'
import { CatalogError, error, type Issue, type Position } from './issue.ts'
import { type CheckInputs, readText, withoutMark } from './check-context.ts'

export interface Loaded {
  readonly catalog: Catalog
  /** Warnings only: a catalog with errors is not loaded. */
  readonly warnings: readonly Issue[]
  readonly text: string
  /** Position of a route by its key: `/paid/x`, `POST /paid/x`. */
  readonly at: (route: string) => Position
}

/**
 * Reads a catalog file and everything it names. Throws `CatalogError` with every issue when it cannot be used. `files`
 * gets every file as it was right before it was read, whether or not it exists.
 *
 * @example
 * const { catalog } = loadCatalog('catalog.yaml', { handlers: ['ping'], documents: ['openapi'] })
 */
export function loadCatalog(
  file: string,
  known: Omit<CheckInputs, 'read'>,
  files?: Map<string, Mark>,
): Loaded {
  const read = readerIn(dirname(resolve(file)), files)
  const text = readText({ read }, basename(file))
  if (text === undefined) {
    const position = { line: 1, column: 1, width: 1 }
    throw new CatalogError(file, '', [
      error(
        'catalog_unreadable',
        position,
        `${basename(file)} cannot be read${existsSync(file) ? '' : ': no such file'}`,
      ),
    ])
  }
  return compileText(file, text, { ...known, read })
}

/** Like `loadCatalog`, for a text in memory. */
export function compileText(file: string, given: string, inputs: CheckInputs): Loaded {
  const text = withoutMark(given)
  const checked = check(text, inputs)
  if (checked.kind === 'unsound') throw new CatalogError(file, text, checked.issues)
  const { context, issues } = checked
  const at = (route: string): Position => {
    const spelt = context.document.has(['routes', route]) ? route : `GET ${route}`
    return context.document.atKey(['routes', spelt])
  }
  return { catalog: compile(context), warnings: issues, text, at }
}

/** Identity and times of a file, without opening it; it is equal as long as the file is unchanged. */
export type Mark = string

export const ABSENT: Mark = 'absent'

/** Must be called right before the file is read. */
export function markNow(path: string): Mark {
  return markOf(statSync(path, { bigint: true, throwIfNoEntry: false }))
}

/** Undefined when the file does not exist or is empty: some editors empty a file before they write it. */
export function markOf(stats: Pick<BigIntStats, 'ino' | 'size' | 'mtimeNs'> | undefined): Mark {
  return stats === undefined || stats.size === 0n ? ABSENT : `${stats.ino} ${stats.size} ${stats.mtimeNs}`
}

/** Reads files of a folder by their path, and records each in `files`. */
export function readerIn(folder: string, files?: Map<string, Mark>): CheckInputs['read'] {
  return (name) => {
    const path = resolve(folder, name)
    files?.set(path, markNow(path))
    return readBytes(path)
  }
}

function readBytes(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

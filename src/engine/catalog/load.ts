import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Catalog } from './catalog.ts'
import { check } from './check.ts'
import { compile } from './compile.ts'
import { CatalogError, error, type Issue, type Position } from './issue.ts'
import { type CheckInputs, readText, withoutMark } from './check-context.ts'

export interface Loaded {
  readonly catalog: Catalog
  /** Only warnings: errors do not load. */
  readonly warnings: readonly Issue[]
  readonly text: string
  /** Where a route stands in the text, by its key: `/paid/x`, `POST /paid/x`. */
  readonly at: (route: string) => Position
}

/**
 * Reads a catalog file and everything it names. Throws `CatalogError` with every issue when it cannot be used. `onRead` is
 * called with every file right before it is read, whether or not it exists.
 *
 * @example
 * const { catalog } = loadCatalog('catalog.yaml', { handlers: Object.keys(handlers), documents: documentNames })
 */
export function loadCatalog(
  file: string,
  known: Omit<CheckInputs, 'read'>,
  onRead?: (path: string) => void,
): Loaded {
  const read = readerIn(dirname(resolve(file)), onRead)
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

/** The same from text that is at hand. */
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

/** Reads files by their path from a folder. */
export function readerIn(folder: string, onRead?: (path: string) => void): CheckInputs['read'] {
  return (name) => {
    const path = resolve(folder, name)
    onRead?.(path)
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

import { CatalogError, checkHeaderBudget, hasErrors, loadCatalog, type Loaded } from '../engine/index.ts'
import type { Env } from '../env.ts'
import type { Call } from './command.ts'

/**
 * Loads a catalog to be served, and also judges what depends on where it is served: the size of its headers. `noted` is
 * told of every file that is read.
 */
export function loadServed(
  file: string,
  known: Call['known'],
  { baseUrl, port }: Pick<Env, 'baseUrl' | 'port'>,
  noted?: (path: string) => void,
): Loaded {
  const loaded = loadCatalog(file, known, noted)
  const { catalog, text, at } = loaded
  const issues = checkHeaderBudget(catalog, { baseUrl: baseUrl ?? `http://localhost:${port}`, at })
  if (hasErrors(issues)) throw new CatalogError(file, text, [...loaded.warnings, ...issues])
  return { ...loaded, warnings: [...loaded.warnings, ...issues] }
}

import {
  CatalogError,
  checkHeaderBudget,
  documentNames,
  hasErrors,
  loadCatalog,
  type Loaded,
} from '../engine/index.ts'
import type { Env } from '../env.ts'

/**
 * Loads a catalog to be served, and also judges what depends on where it is served: the size of its headers. `noted` is
 * told of every file that is read.
 */
export function loadServed(
  file: string,
  handlers: readonly string[],
  { baseUrl, port }: Pick<Env, 'baseUrl' | 'port'>,
  noted?: (path: string) => void,
): Loaded {
  const loaded = loadCatalog(file, { handlers, documents: documentNames }, noted)
  const { catalog, text, at } = loaded
  const issues = checkHeaderBudget(catalog, { baseUrl: baseUrl ?? `http://localhost:${port}`, at })
  if (hasErrors(issues)) throw new CatalogError(file, text, [...loaded.warnings, ...issues])
  return { ...loaded, warnings: [...loaded.warnings, ...issues] }
}

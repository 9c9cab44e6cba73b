import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Reads what a catalog names by a path from its own folder; undefined when it is not there. */
export function beside(catalog: string): (path: string) => Buffer | undefined {
  const folder = dirname(resolve(catalog))
  return (path) => {
    try {
      return readFileSync(resolve(folder, path))
    } catch {
      return undefined
    }
  }
}

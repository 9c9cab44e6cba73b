import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { at, readObject, textAt } from '../json-access.ts'

/** Where npm gets the package for a new project. */
export type PackageSource =
  /** The range or the file for `dependencies`; a tarball is copied into the project. */
  | { readonly kind: 'installable'; readonly range: string; readonly tarball: string | undefined }
  /** This is a clone: a project has to be given its tarball. */
  | { readonly kind: 'clone' }

/** The tarball that the running package was installed from, else its version. */
export function packageSource(version: string): PackageSource {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  if (basename(dirname(root)) !== 'node_modules') return { kind: 'clone' }
  const tarball = tarballOf(root)
  const range = tarball === undefined ? `^${version}` : `file:${basename(tarball)}`
  return { kind: 'installable', range, tarball }
}

/** npm keeps in this file of a project what it has installed from where. */
function tarballOf(root: string): string | undefined {
  const modules = dirname(root)
  const lock = join(modules, '.package-lock.json')
  if (!existsSync(lock)) return undefined
  const packages = at(readObject(readFileSync(lock, 'utf8')), 'packages')
  const resolved = textAt(packages, `node_modules/${basename(root)}`, 'resolved')
  return resolved?.startsWith('file:') ? resolve(dirname(modules), resolved.slice('file:'.length)) : undefined
}

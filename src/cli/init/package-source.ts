import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { at, readObject, textAt } from '../json-access.ts'

/** Where npm gets the package for a new project. */
export type PackageSource =
  /** The range or the file for `dependencies`. */
  | { readonly kind: 'installable'; readonly range: string }
  /** This is a clone, and there is no release yet: a project has to be given the tarball. */
  | { readonly kind: 'clone' }

/** The version that runs now, or until there is a release the tarball that it was installed from. */
export function packageSource(folder: string, version: string): PackageSource {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const manifest = readObject(readFileSync(join(root, 'package.json'), 'utf8'))
  if (at(manifest, 'private') !== true) return { kind: 'installable', range: `^${version}` }
  const tarball = tarballOf(root)
  if (tarball === undefined) return { kind: 'clone' }
  return { kind: 'installable', range: `file:${relative(resolve(folder), tarball)}` }
}

/** npm keeps in this file of a project what it has installed from where. */
function tarballOf(root: string): string | undefined {
  const modules = dirname(root)
  const lock = join(modules, '.package-lock.json')
  if (basename(modules) !== 'node_modules' || !existsSync(lock)) return undefined
  const packages = at(readObject(readFileSync(lock, 'utf8')), 'packages')
  const resolved = textAt(packages, `node_modules/${basename(root)}`, 'resolved')
  return resolved?.startsWith('file:') ? resolve(dirname(modules), resolved.slice('file:'.length)) : undefined
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './shell.ts'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Folders of the packages that are published, each after those that it depends on. */
export const PUBLISHED = ['.', 'src/buyer', 'create-ratecard'] as const
/** Folders of the packages that have the version of the root. */
const VERSIONED = [...PUBLISHED, 'src/service']

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports?: object
  readonly dependencies?: Readonly<Record<string, string>>
}

export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
}

/** What a user downloads. */
export interface Packed {
  readonly manifest: Manifest
  readonly tarball: string
  readonly files: readonly { readonly path: string; readonly size: number }[]
  readonly bytes: number
  readonly unpackedBytes: number
}

interface PackReport {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: Packed['files']
}

/** Packs what the last build has left. Throws when npm fails. */
export function pack(folder: string, destination: string): Packed {
  const output = run(`npm pack --json --ignore-scripts --pack-destination ${destination}`, join(ROOT, folder))
  const [report] = JSON.parse(output.slice(output.indexOf('['), output.lastIndexOf(']') + 1)) as PackReport[]
  if (report === undefined) throw new Error(output)
  return {
    manifest: manifestOf(folder),
    tarball: join(destination, report.filename),
    files: report.files,
    bytes: report.size,
    unpackedBytes: report.unpackedSize,
  }
}

/** Packages, and dependencies between them, that have another version than the root. */
export function versionProblems(): string[] {
  const { version } = manifestOf('.')
  const names = new Set(VERSIONED.map((folder) => manifestOf(folder).name))
  return VERSIONED.flatMap((folder) => {
    const manifest = manifestOf(folder)
    const needed = Object.entries(manifest.dependencies ?? {}).filter(([name]) => names.has(name))
    return [[manifest.name, manifest.version] as const, ...needed]
      .filter(([, found]) => found !== version)
      .map(
        ([name, found]) =>
          `${folder}/package.json has ${name} ${found} instead of ${version}: npm run version`,
      )
  })
}

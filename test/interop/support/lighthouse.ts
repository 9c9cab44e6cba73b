import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const PACKAGE = 'lighthouse@13.5.0'
const SHA512 = 'w/yYIwg7mP9pCwkcbAXRztnvKHua2dJnZaNptPLa1cEw+akr6lbsIDiUOLsQwvaiAUr0xvxdmwvAzl3pj3Np0A=='
const MODULES = fileURLToPath(new URL('../node_modules/', import.meta.url))

export interface Finding {
  readonly element: string
  readonly message: string
}

interface Tester {
  readonly errors: readonly Finding[]
  readonly warnings: readonly Finding[]
  validate_manifest(text: string, label: string): boolean
}

/**
 * Lighthouse’s reading of an ARD manifest. Of the package only these files are used, so that its thirty dependencies
 * and its demand for a newer Node.js stay out: the archive is fetched, held against its checksum and unpacked.
 */
export async function openConformanceTester(): Promise<Tester> {
  const folder = join(MODULES, 'lighthouse')
  const file = join(folder, 'third-party/ard/ard.js')
  if (!existsSync(file)) await unpack(folder)
  const { ConformanceTester }: { ConformanceTester: new () => Tester } = await import(
    pathToFileURL(file).href
  )
  return new ConformanceTester()
}

async function unpack(folder: string): Promise<void> {
  const run = promisify(execFile)
  mkdirSync(folder, { recursive: true })
  const { stdout } = await run('npm', ['pack', PACKAGE, '--silent', '--pack-destination', folder])
  const archive = join(folder, stdout.trim().split('\n').at(-1) ?? '')
  const found = createHash('sha512').update(readFileSync(archive)).digest('base64')
  if (found !== SHA512) throw new Error(`${PACKAGE} is not the archive it was: ${found}`)
  await run('tar', [
    '-xzf',
    archive,
    '-C',
    folder,
    '--strip-components=1',
    'package/package.json',
    'package/third-party/ard',
  ])
}

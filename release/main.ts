/**
 * `npm run release -- --dry-run` packs and checks all packages, installs them on every supported Node.js and prints what would
 * be published. Without `--dry-run` it publishes them; only the release workflow can.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { findTools, firstHour, MANAGERS, type Tarballs } from './first-hour.ts'
import { packageProblems } from './package-checks.ts'
import { pack, PUBLISHED, versionProblems, type Packed } from './packages.ts'
import { publish, publishProblems } from './publish.ts'

const NODES = [20, 22, 24]

function show({ manifest, files, bytes, unpackedBytes }: Packed): void {
  const megabytes = (size: number): string => `${(size / 1e6).toFixed(2)} MB`
  console.log(
    `\n${manifest.name} ${manifest.version}: ${files.length} files, ${megabytes(bytes)}, ${megabytes(unpackedBytes)} unpacked`,
  )
  const folders = new Map<string, string[]>()
  for (const { path } of files)
    folders.set(dirname(path), [...(folders.get(dirname(path)) ?? []), basename(path)])
  for (const [folder, names] of folders) console.log(`  ${folder}: ${names.join(' ')}`)
}

/** What went wrong on each Node.js with each package manager. */
async function firstHours(
  place: string,
  tarballs: Tarballs,
  missing: (line: string) => void,
): Promise<string[]> {
  const problems: string[] = []
  for (const major of NODES) {
    const tools = findTools(major)
    if (tools === undefined) {
      missing(`Node.js ${major}: not run, it is neither here nor in the registry`)
      continue
    }
    for (const manager of MANAGERS)
      try {
        await firstHour(join(place, `${major}-${manager}`), tools, manager, tarballs)
        console.log(`Node.js ${tools.node} with ${manager}: installed, created, checked, tested, sold`)
      } catch (fault) {
        problems.push(`Node.js ${tools.node} with ${manager}: ${String(fault)}`)
      }
  }
  return problems
}

async function release(place: string): Promise<readonly string[]> {
  const isRehearsal = process.argv.includes('--dry-run')
  const open = publishProblems(process.env)
  if (!isRehearsal && open.length > 0) return open
  const packages = PUBLISHED.map((folder) => pack(folder, place))
  packages.forEach(show)
  const checked = [
    ...versionProblems(),
    ...packages.flatMap((each) => packageProblems(each).map((line) => `${each.manifest.name}: ${line}`)),
  ]
  if (checked.length > 0) return checked
  console.log('\nfiles, sizes, licences, publint and attw: in order')
  const tarballs = new Map(packages.map(({ manifest, tarball }) => [manifest.name, tarball]))
  const missing: string[] = []
  const problems = await firstHours(place, tarballs, (line) => missing.push(line))
  for (const line of missing) console.log(line)
  if (problems.length > 0) return problems
  if (!isRehearsal) {
    if (missing.length === 0) publish(packages)
    return missing
  }
  console.log(`\nwould publish ${packages.map(({ tarball }) => basename(tarball)).join(', ')}`)
  for (const line of open) console.log(`  not from here: ${line}`)
  return []
}

const place = mkdtempSync(join(tmpdir(), 'ratecard-release-'))
try {
  const problems = await release(place)
  for (const line of problems) console.error(`refused: ${line}`)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(place, { recursive: true, force: true })
}

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Catalog } from '../engine/catalog/catalog.ts'
import { compileText, loadCatalog, readerIn } from '../engine/catalog/load-catalog.ts'
import { documentNames } from '../engine/documents/all.ts'
import type { Call } from './command.ts'
import { openOpenapi, readChallenges } from './doctor/service-answers.ts'
import { at } from './json-access.ts'
import { openapiOperations } from './openapi-document.ts'
import { type Change, compare, type Difference } from './plan/difference.ts'
import { catalogSnapshot, serviceSnapshot, type Snapshot } from './plan/snapshot.ts'
import { columns, linesFor } from './terminal-text.ts'
import { clean, cleanText } from '../command-line/printable.ts'

/** Exit code a pipeline can act on: buyers pay more, lose something or have to change their calls. */
const ALARM = 2

export async function plan(call: Call): Promise<number> {
  const { positionals, flags, env, terminal } = call
  const file = positionals[0] ?? env.catalog
  const against = flags.text('against') ?? 'HEAD'
  const baseUrl = env.baseUrl ?? `http://localhost:${env.port}`
  const catalog = loadCatalog(file, KNOWN).catalog
  const after = catalogSnapshot(catalog, baseUrl)
  const before = await earlier({ file, against, baseUrl, after })
  if (typeof before === 'string') {
    terminal.err(`ratecard plan: ${clean(before)}`)
    return 1
  }
  const difference = compare(before, after)
  if (flags.given('json')) terminal.out(JSON.stringify({ file, against, ...difference }, cleanText, 2))
  else terminal.out(linesFor(terminal, asText(`${file} against ${against}`, difference)))
  return difference.alarms.length > 0 ? ALARM : 0
}

/** Handlers do not matter to buyers. */
const KNOWN = { documents: documentNames, handlers: undefined }

interface Comparison {
  readonly file: string
  readonly against: string
  readonly baseUrl: string
  readonly after: Snapshot
}

/** What buyers meet now, or a sentence that says why this is not known. Throws `CatalogError`. */
async function earlier({ file, against, baseUrl, after }: Comparison): Promise<Snapshot | string> {
  if (/^https?:\/\//.test(against)) {
    if (!URL.canParse(against)) return `${against} is not a URL`
    const { origin } = new URL(against)
    const opened = await openOpenapi(origin)
    if (typeof opened === 'string') return opened
    const { openapi, isSandbox } = opened
    const paid = openapiOperations(openapi).flatMap(([key, operation]) =>
      at(operation, 'x-payment-info') === undefined ? [] : [key],
    )
    // A sandbox is paid on its own networks, whatever its catalog names.
    const asked = isSandbox ? [] : paid.slice(0, 1)
    const { challenges } = await readChallenges(origin, openapi, asked, () => undefined)
    return serviceSnapshot(openapi, challenges, after)
  }
  const of = (catalog: Catalog): Snapshot => catalogSnapshot(catalog, baseUrl)
  if (existsSync(against)) return of(loadCatalog(against, KNOWN).catalog)
  const opened = openRevision(file, against)
  if (typeof opened === 'string') return opened
  const { text, read } = opened
  // A file that is not under version control, such as a list of denied payers, is read as it is now.
  const present = readerIn(dirname(file))
  return of(
    compileText(`${against}:${file}`, text, { ...KNOWN, read: (path) => read(path) ?? present(path) })
      .catalog,
  )
}

/** Longer than any file next to a catalog. */
const LARGEST_BYTES = 64_000_000

/** Reads what was next to a catalog at a commit, branch or tag of Git; undefined: it was not there. */
type ReadRevision = (path: string) => Buffer | undefined

interface Opened {
  readonly text: string
  readonly read: ReadRevision
}

/** The catalog of a commit, branch or tag, or a sentence that says why there is none. */
function openRevision(file: string, ref: string): Opened | string {
  // Git would take it for an option.
  if (ref.startsWith('-')) return `${ref} is no name of a commit`
  const folder = dirname(file)
  if (git(folder, ['rev-parse', '--git-dir']) === undefined)
    return `${file} is in no Git repository: name a file or a URL with --against`
  if (git(folder, ['rev-parse', '--verify', '--quiet', `${ref}^{commit}`]) === undefined)
    return `${ref} is neither a file, a URL nor a commit, branch or tag here${shallowHint(folder)}`
  const read = (path: string): Buffer | undefined => git(folder, ['show', `${ref}:./${path}`])
  const text = read(basename(file))
  return text === undefined ? `${ref} has no ${file}` : { text: text.toString('utf8'), read }
}

/** What a checkout in CI leaves out is the usual reason. */
function shallowHint(folder: string): string {
  const isShallow = git(folder, ['rev-parse', '--is-shallow-repository'])?.toString().trim() === 'true'
  return isShallow
    ? '; this clone is shallow: "git fetch --unshallow" gets all commits (actions/checkout: "fetch-depth: 0")'
    : ''
}

function git(folder: string, args: readonly string[]): Buffer | undefined {
  try {
    const options = { stdio: 'pipe', maxBuffer: LARGEST_BYTES } as const
    return execFileSync('git', ['-C', folder, ...args], options)
  } catch {
    return undefined
  }
}

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

function asText(title: string, { changes, lines, alarms }: Difference): string {
  const table = changes.flatMap(({ kind, name, price }) => [[SIGNS[kind], name, price]])
  const rows = table.length === 0 ? [] : columns(table).split('\n')
  const detailed = rows.flatMap((row, place) => [
    row,
    ...(changes[place]?.parameters ?? []).map((line) => `     ${line}`),
  ])
  return [
    title,
    ...(changes.length + lines.length === 0 ? ['no difference'] : []),
    ...detailed,
    ...lines,
    ...alarms.map((alarm) => `! ${alarm}`),
  ]
    .map(clean)
    .join('\n')
}

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Catalog, compileText, documentNames, HEADER_TARGET, loadCatalog } from '../engine/internal.ts'
import type { Call } from './command.ts'
import { openOpenapi } from './doctor/answers.ts'
import { type Change, compare, type Difference } from './plan/difference.ts'
import { catalogSnapshot, serviceSnapshot, type Snapshot } from './plan/snapshot.ts'
import { clean, cleanText, columns } from './terminal-text.ts'

/** Exit code a pipeline can act on: buyers pay more, lose something or have to change their calls. */
const ALARM = 2

export async function plan(call: Call): Promise<number> {
  const { positionals, flags, env, terminal } = call
  const file = positionals[0] ?? env.catalog
  const against = flags.text('against') ?? 'HEAD'
  const baseUrl = env.baseUrl ?? `http://localhost:${env.port}`
  const catalog = loadCatalog(file, KNOWN).catalog
  const before = await earlier(file, against, baseUrl)
  if (typeof before === 'string') {
    terminal.err(`ratecard plan: ${clean(before)}`)
    return 1
  }
  const after = catalogSnapshot(catalog, baseUrl)
  const difference = compare(before, after)
  const title = { file, against, header: largestHeader(after) }
  if (flags.given('json')) terminal.out(JSON.stringify({ file, against, ...difference }, cleanText, 2))
  else terminal.out(flags.given('markdown') ? asMarkdown(title, difference) : asText(title, difference))
  return exitOf(difference)
}

function exitOf({ alarms }: Difference): number {
  return alarms.length > 0 ? ALARM : 0
}

/** Handlers do not matter to buyers. */
const KNOWN = { documents: documentNames, handlers: undefined }

/** What buyers meet now; in words, why that is not known. Throws `CatalogError`. */
async function earlier(file: string, against: string, baseUrl: string): Promise<Snapshot | string> {
  if (/^https?:\/\//.test(against)) {
    if (!URL.canParse(against)) return `${against} is not a URL`
    const opened = await openOpenapi(new URL(against).origin)
    return typeof opened === 'string' ? opened : serviceSnapshot(opened.openapi)
  }
  const of = (catalog: Catalog): Snapshot => catalogSnapshot(catalog, baseUrl)
  if (existsSync(against)) return of(loadCatalog(against, KNOWN).catalog)
  const opened = openRevision(file, against)
  if (opened.kind === 'fault') return opened.sentence
  const { text, read } = opened
  return of(compileText(`${against}:${file}`, text, { ...KNOWN, read }).catalog)
}

/** The one that is next to be too large for proxies. */
function largestHeader({ headers }: Snapshot): string | undefined {
  const [largest] = [...headers].toSorted(([, one], [, other]) => other - one)
  return largest === undefined ? undefined : `${largest[1]} of ${HEADER_TARGET} bytes, at ${largest[0]}`
}

/** Longer than any file beside a catalog. */
const LARGEST_BYTES = 64_000_000

/** Reads what stood beside a catalog at a commit, branch or tag of Git; undefined: it was not there. */
export type ReadRevision = (path: string) => Buffer | undefined

export type Opened =
  | { readonly kind: 'open'; readonly text: string; readonly read: ReadRevision }
  /** In words that make a sentence. */
  | { readonly kind: 'fault'; readonly sentence: string }

export function openRevision(file: string, ref: string): Opened {
  const fault = (sentence: string): Opened => ({ kind: 'fault', sentence })
  // Git would take it for an option.
  if (ref.startsWith('-')) return fault(`${ref} is no name of a commit`)
  const folder = dirname(file)
  if (git(folder, ['rev-parse', '--git-dir']) === undefined)
    return fault(`${file} is in no Git repository: name a file or a URL with --against`)
  if (git(folder, ['rev-parse', '--verify', '--quiet', `${ref}^{commit}`]) === undefined)
    return fault(`${ref} is neither a file, a URL nor a commit, branch or tag here`)
  const read = (path: string): Buffer | undefined => git(folder, ['show', `${ref}:./${path}`])
  const text = read(basename(file))
  return text === undefined
    ? fault(`${ref} has no ${file}`)
    : { kind: 'open', text: text.toString('utf8'), read }
}

function git(folder: string, args: readonly string[]): Buffer | undefined {
  try {
    const options = { stdio: 'pipe', maxBuffer: LARGEST_BYTES } as const
    return execFileSync('git', ['-C', folder, ...args], options)
  } catch {
    return undefined
  }
}

export interface Title {
  readonly file: string
  readonly against: string
  /** Of the largest challenge; undefined: there is none. */
  readonly header: string | undefined
}

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

export function asText({ file, against, header }: Title, { changes, lines, alarms }: Difference): string {
  const table = changes.flatMap(({ kind, name, price, header: bytes }) => [[SIGNS[kind], name, price, bytes]])
  const rows = table.length === 0 ? [] : columns(table).split('\n')
  const detailed = rows.flatMap((row, place) => [
    row,
    ...(changes[place]?.parameters ?? []).map((line) => `     ${line}`),
  ])
  return [
    `${file} against ${against}`,
    ...(changes.length + lines.length === 0 ? ['no difference'] : []),
    ...detailed,
    ...lines,
    ...(header === undefined ? [] : [`largest header: ${header}`]),
    ...alarms.map((alarm) => `! ${alarm}`),
  ]
    .map(clean)
    .join('\n')
}

/** For a pull request. */
export function asMarkdown({ file, against, header }: Title, { changes, lines, alarms }: Difference): string {
  const rows = changes.map(({ kind, name, price, parameters, header: bytes }) =>
    [SIGNS[kind], code(name), price, parameters.map(code).join('<br>'), bytes].map(cell).join(' | '),
  )
  return [
    `### ${code(file)} against ${code(against)}`,
    '',
    ...(changes.length + lines.length === 0 ? ['No difference.'] : []),
    ...(rows.length === 0
      ? []
      : [
          '| | Route | Price | Parameters | Header |',
          '|---|---|---|---|---|',
          ...rows.map((row) => `| ${row} |`),
          '',
        ]),
    ...lines.map((line) => `- ${cell(clean(line))}`),
    ...(header === undefined ? [] : [`- largest header: ${cell(clean(header))}`]),
    ...(alarms.length === 0 ? [] : ['', ...alarms.map((alarm) => `- ⚠️ **${cell(clean(alarm))}**`)]),
  ].join('\n')
}

/** Backticks of a stranger must not end it. */
function code(text: string): string {
  return `\`${clean(text).replaceAll('`', "'")}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

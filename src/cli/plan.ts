import { existsSync } from 'node:fs'
import { compileText, documentNames, HEADER_TARGET, loadCatalog, type Catalog } from '../engine/index.ts'
import { clean, cleanText } from './terminal-text.ts'
import type { Call } from './command.ts'
import { openOpenapi } from './doctor/answers.ts'
import { compare, type Difference } from './plan/difference.ts'
import { openRevision } from './plan/revision.ts'
import { asMarkdown, asText } from './plan/report.ts'
import { catalogSnapshot, serviceSnapshot, type Snapshot } from './plan/snapshot.ts'

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
    if (!URL.canParse(against)) return `${against} is no address`
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

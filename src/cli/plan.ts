import { existsSync } from 'node:fs'
import { CatalogError, compileText, HEADER_TARGET, loadCatalog, type Catalog } from '../engine/index.ts'
import { clean, cleanText } from './terminal-text.ts'
import type { Call, Command } from './command.ts'
import { openOpenapi } from './doctor/answers.ts'
import { compare, type Difference } from './plan/difference.ts'
import { openRevision } from './plan/revision.ts'
import { asMarkdown, asText } from './plan/report.ts'
import { catalogSnapshot, serviceSnapshot, type Snapshot } from './plan/snapshot.ts'

/** Exit code a pipeline can act on: buyers pay more, lose something or have to change their calls. */
const ALARM = 2

export const plan: Command = {
  name: 'plan',
  summary:
    'what a change of the catalog does to buyers; exits with 2 when they pay more, lose something or have to change their calls',
  usage: 'plan [catalog.yaml] [--against FILE, GIT REF or URL] [--markdown | --json]',
  takes: 1,
  examples: [
    'ratecard plan',
    'ratecard plan --against origin/main --markdown >> "$GITHUB_STEP_SUMMARY"',
    'ratecard plan --against https://api.example.com',
  ],
  options: { against: { type: 'string' }, markdown: { type: 'boolean' }, json: { type: 'boolean' } },
  run: async (call) => {
    const { positionals, flags, env, terminal } = call
    const file = positionals[0] ?? env.catalog
    const against = flags.text('against') ?? 'HEAD'
    const baseUrl = env.baseUrl ?? `http://localhost:${env.port}`
    try {
      const catalog = loadCatalog(file, { ...call.known, handlers: undefined }).catalog
      const before = await earlier(call, file, against, baseUrl)
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
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      terminal.err(fault.message)
      return 1
    }
  },
}

function exitOf({ alarms }: Difference): number {
  return alarms.length > 0 ? ALARM : 0
}

/** What buyers meet now; in words, why that is not known. Throws `CatalogError`. */
async function earlier(
  call: Call,
  file: string,
  against: string,
  baseUrl: string,
): Promise<Snapshot | string> {
  const known = { ...call.known, handlers: undefined }
  if (/^https?:\/\//.test(against)) {
    if (!URL.canParse(against)) return `${against} is no address`
    const opened = await openOpenapi(new URL(against).origin)
    return typeof opened === 'string' ? opened : serviceSnapshot(opened.openapi)
  }
  const of = (catalog: Catalog): Snapshot => catalogSnapshot(catalog, baseUrl)
  if (existsSync(against)) return of(loadCatalog(against, known).catalog)
  const opened = openRevision(file, against)
  if (opened.kind === 'fault') return opened.sentence
  const { text, read } = opened
  return of(compileText(`${against}:${file}`, text, { ...known, read }).catalog)
}

/** The one that is next to be too large for proxies. */
function largestHeader({ headers }: Snapshot): string | undefined {
  const [largest] = [...headers].toSorted(([, one], [, other]) => other - one)
  return largest === undefined ? undefined : `${largest[1]} of ${HEADER_TARGET} bytes, at ${largest[0]}`
}

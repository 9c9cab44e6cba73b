import { countOf } from '../../engine/base/words.ts'
import type { Catalog } from '../../engine/catalog/catalog.ts'
import { loadCatalog } from '../../engine/catalog/load-catalog.ts'
import { documentNames } from '../../engine/documents/all.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { handlersFor } from '../load-handlers.ts'
import { columns, linesFor } from '../terminal-text.ts'
import { clean, cleanText } from '../../command-line/printable.ts'
import { documentPlaces } from '../openapi-document.ts'
import { checkDocuments, checkRevisions, openOpenapi, readChallenges } from './service-answers.ts'
import { compareStatements, type Mismatch, type DocumentStatements } from './route-statements.ts'
import { catalogStatements, challengeStatements, openapiStatements } from './service-statements.ts'

/**
 * Checks what can differ on a running service: whether it and its documents can be reached, which revision of the
 * catalog each server behind the address has, and what the 402 of every route offers in every protocol and network,
 * compared with its OpenAPI document and with the catalog, when this machine has it. Nothing is paid.
 */
export async function examineService(call: Call, target: string): Promise<number> {
  const { terminal, flags } = call
  const origin = originOf(target)
  const catalog = await declaredCatalog(call)
  const declared = catalog === undefined ? undefined : catalogStatements(catalog)
  const opened = await openOpenapi(origin)
  if (typeof opened === 'string') {
    terminal.err(`ratecard doctor: ${clean(opened)}`)
    return 1
  }
  const { document, openapi } = opened
  const first = openapiStatements(document, openapi)
  const sold = soldPaths(declared ?? first)
  const challenges = await readChallenges(origin, openapi, sold, (path) => terminal.progress(clean(path)))
  const places = documentPlaces(openapi)
  const [health] = places.get('health') ?? []
  const statements = [
    ...(declared === undefined ? [] : [declared]),
    first,
    ...challengeStatements(challenges.challenges),
  ]
  const differences: Mismatch[] = [
    ...challenges.differences,
    ...(await checkDocuments(origin, places)),
    ...(health === undefined ? [] : await checkRevisions(origin, health, catalog?.revision)),
    ...compareStatements(statements),
  ]
  const names = statements.map((each) => each.document)
  if (flags.given('json'))
    terminal.out(
      JSON.stringify(
        { url: origin, routes: first.statements.size, compared: names, differences },
        cleanText,
        2,
      ),
    )
  else tell(call, { routes: first.statements.size, names, differences })
  return differences.length === 0 ? 0 : 1
}

/** Throws `UsageError`. */
export function originOf(target: string): string {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${target} is not the URL of a service: http://… or https://…`)
  return url.origin
}

/** The catalog on this machine; undefined when none is named. */
async function declaredCatalog(call: Call): Promise<Catalog | undefined> {
  const file = call.flags.text('catalog')
  if (file === undefined) return undefined
  const handlers = Object.keys(await handlersFor(call, file))
  return loadCatalog(file, { documents: documentNames, handlers }).catalog
}

function soldPaths({ statements }: DocumentStatements): string[] {
  return [...statements].filter(([, statement]) => statement.get('price') !== 'free').map(([path]) => path)
}

interface Finding {
  readonly routes: number
  readonly names: readonly string[]
  readonly differences: readonly Mismatch[]
}

function tell({ terminal }: Call, { routes, names, differences }: Finding): void {
  if (differences.length === 0) {
    terminal.out(
      linesFor(terminal, `${countOf(routes, 'route')}: ${names.map(clean).join(', ')} say the same`),
    )
    return
  }
  const rows = rowsOf(differences).map((row) => row.map(clean))
  const text =
    terminal.reader === 'program'
      ? columns([['ROUTE', 'FIELD', 'SAYS', 'IN', 'BUT', 'IN'], ...rows])
      : rows.map(paragraphOf).join('\n\n')
  terminal.out(linesFor(terminal, `${text}\n\ncompared: ${names.map(clean).join(', ')}`))
}

/** A row for a person: six columns are wider than a terminal. */
function paragraphOf([
  path = '',
  field = '',
  expected = '',
  reference = '',
  says = '',
  documents = '',
]: readonly string[]): string {
  return `${path}: ${field}\n  ${expected} in ${reference}\n  ${says} in ${documents}`
}

/** Documents that differ from the same one in the same way share a row. */
function rowsOf(differences: readonly Mismatch[]): string[][] {
  const rows = new Map<string, { readonly first: Mismatch; readonly documents: string[] }>()
  for (const each of differences) {
    const key = JSON.stringify([each.path, each.field, each.says, each.expected, each.reference])
    const row = rows.get(key)
    if (row === undefined) rows.set(key, { first: each, documents: [each.document] })
    else row.documents.push(each.document)
  }
  return Array.from(rows.values(), ({ first, documents }) => {
    const { path, field, says, expected, reference } = first
    return [path, field, expected, reference, says, documents.join(', ')]
  })
}

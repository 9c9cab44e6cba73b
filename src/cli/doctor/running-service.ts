import { loadCatalog } from '../../engine/catalog/load.ts'
import { documentNames } from '../../engine/documents/all.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { handlersFor } from '../load.ts'
import { columns } from '../terminal-text.ts'
import { clean, cleanText } from '../../command-line/printable.ts'
import { openOpenapi, readChallenges, readDocuments } from './answers.ts'
import { catalogClaims, documentPlaces, openapiClaims } from './claim-readers.ts'
import { compareClaims, type Mismatch, type RouteClaims } from './route-claims.ts'

/**
 * Compares the claims of a running service: its catalog (when this machine has it), its documents, and the 402 of
 * every route in every protocol. Nothing is paid.
 */
export async function examineService(call: Call, target: string): Promise<number> {
  const { terminal, flags } = call
  const origin = originOf(target)
  const declared = await declaredClaims(call)
  const opened = await openOpenapi(origin)
  if (typeof opened === 'string') {
    terminal.err(`ratecard doctor: ${clean(opened)}`)
    return 1
  }
  const { document, openapi } = opened
  const first = openapiClaims(document, openapi)
  const sold = soldPaths(declared ?? first)
  const challenges = await readChallenges(origin, openapi, sold, (path) => terminal.progress(clean(path)))
  const documents = await readDocuments(origin, documentPlaces(openapi), document)
  const claims = [
    ...(declared === undefined ? [] : [declared]),
    first,
    ...challenges.claims,
    ...documents.claims,
  ]
  const differences: Mismatch[] = [
    ...challenges.differences,
    ...documents.differences,
    ...compareClaims(claims),
  ]
  const names = claims.map((each) => each.document)
  if (flags.given('json'))
    terminal.out(
      JSON.stringify({ url: origin, routes: first.claims.size, compared: names, differences }, cleanText, 2),
    )
  else tell(call, { routes: first.claims.size, names, differences })
  return differences.length === 0 ? 0 : 1
}

/** Throws `UsageError`. */
export function originOf(target: string): string {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${target} is not the URL of a service: http://… or https://…`)
  return url.origin
}

/** The claims of the catalog on this machine; undefined when none is named. */
async function declaredClaims(call: Call): Promise<RouteClaims | undefined> {
  const file = call.flags.text('catalog')
  if (file === undefined) return undefined
  const handlers = Object.keys(await handlersFor(call, file))
  return catalogClaims(loadCatalog(file, { documents: documentNames, handlers }).catalog)
}

function soldPaths({ claims }: RouteClaims): string[] {
  return [...claims].filter(([, claim]) => claim.get('price') !== 'free').map(([path]) => path)
}

interface Finding {
  readonly routes: number
  readonly names: readonly string[]
  readonly differences: readonly Mismatch[]
}

function tell({ terminal }: Call, { routes, names, differences }: Finding): void {
  if (differences.length === 0) {
    terminal.out(`${routes} routes: ${names.map(clean).join(', ')} say the same`)
    return
  }
  terminal.out(
    columns([
      ['ROUTE', 'FIELD', 'SAYS', 'IN', 'BUT', 'IN'],
      ...rowsOf(differences).map((row) => row.map(clean)),
    ]),
  )
  terminal.out('')
  terminal.out(`compared: ${names.map(clean).join(', ')}`)
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

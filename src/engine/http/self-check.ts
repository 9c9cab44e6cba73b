import { examplePath } from '../catalog/catalog.ts'
import { servedTestimony } from '../documents/agreement/catalog-testimony.ts'
import { challengeTestimonies, type Demand } from '../documents/agreement/challenge-testimonies.ts'
import { readDocument, SPEAKING } from '../documents/agreement/reading.ts'
import { compareTestimonies, type Disagreement, type Testimony } from '../documents/agreement/testimony.ts'
import type { Revision, ServedRoute } from './revision.ts'

/**
 * Reads the bytes that are served and the 402 of every route as a stranger would: where they differ, one of the functions
 * that render them is wrong.
 */
export function checkRevision(revision: Revision): Disagreement[] {
  const { catalog, table, facts } = revision
  const listed = table.served.filter(({ route }) => !route.operation.planned)
  const [openapi = [], ...others] = SPEAKING.map((name) => testimoniesOf(revision, name))
  return compareTestimonies([
    servedTestimony(catalog, ({ operation }) => facts.available(operation)),
    ...openapi,
    ...challengeTestimonies(listed.flatMap((served) => demandOf(revision, served))),
    ...others.flat(),
  ])
}

function testimoniesOf({ catalog, pages }: Revision, name: (typeof SPEAKING)[number]): Testimony[] {
  const [path] = catalog.documents[name]?.paths ?? []
  const page = path === undefined ? undefined : pages.get(path)
  if (path === undefined || page === undefined || page.planned) return []
  const reading = readDocument(name, path, page.body.toString())
  return reading.kind === 'says' ? [reading.testimony] : []
}

/** The 402 of a bare address, as a prober meets it. */
function demandOf({ foresights, facts }: Revision, served: ServedRoute): Demand[] {
  const { route, unpaid } = served
  if (unpaid === undefined) return []
  const examples = route.parameters.flatMap(({ name, in: place, example }) =>
    place === 'path' ? [[name, String(example)] as const] : [],
  )
  const parameters = { path: Object.fromEntries(examples), query: '' }
  const resource = facts.baseUrl + examplePath(route)
  const foreseen = foresights.of({ served, parameters, resource })
  const { headers, body } = unpaid({ ...foreseen, code: 'payment_required', detail: '' })
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return [{ path: route.path, header: (name) => byName.get(name), body }]
}

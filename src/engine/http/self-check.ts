import { examplePath } from '../catalog/catalog.ts'
import { servedTestimony } from '../documents/agreement/catalog-testimony.ts'
import { challengeTestimonies, type Demand } from '../documents/agreement/challenge-testimonies.ts'
import { readDocument, SPEAKING } from '../documents/agreement/reading.ts'
import { compareTestimonies, type Disagreement, type Testimony } from '../documents/agreement/testimony.ts'
import { asciiJson } from '../json.ts'
import { UNREADY } from './readiness.ts'
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
    ...challengeTestimonies(listed.flatMap((served) => demandOf(served, facts.baseUrl))),
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

function demandOf({ route, unpaid, readiness }: ServedRoute, baseUrl: string): Demand[] {
  if (unpaid === undefined) return []
  const unready = UNREADY[readiness]
  const { headers, body } = unpaid({
    resource: baseUrl + examplePath(route),
    scope: 'none',
    code: 'payment_required',
    detail: '',
    wouldFail: unready === undefined ? undefined : asciiJson({ status: 503, ...unready }),
  })
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return [{ path: route.path, header: (name) => byName.get(name), body }]
}

import type { Catalog, Route } from '../../catalog/catalog.ts'
import { listedRoutes, priceOf } from '../listing.ts'
import { NONE, spellAvailable, spellParameter, spellParameters } from './spelling.ts'
import { claimOf, type Claim, type Field, type Testimony } from './testimony.ts'

/** What a catalog file says by itself, without knowing what its server has credentials for. */
export function catalogTestimony(catalog: Catalog): Testimony {
  const claims = listedRoutes(catalog).map((route) => [route.path, claimOf(...fieldsOf(route))] as const)
  return { document: 'catalog', covers: 'all', claims: new Map(claims) }
}

/** What a catalog says where it is served. */
export function servedTestimony(catalog: Catalog, available: (route: Route) => boolean): Testimony {
  const claims = listedRoutes(catalog).map((route): [string, Claim] => [
    route.path,
    claimOf(...fieldsOf(route), ['available', spellAvailable(available(route))]),
  ])
  return { document: 'catalog', covers: 'all', claims: new Map(claims) }
}

function fieldsOf(route: Route): [Field, string | undefined][] {
  const parameters = route.parameters.map(({ name, required, default: value }) =>
    spellParameter(name, required, value),
  )
  return [
    ['price', priceOf(route) ?? 'free'],
    ['parameters', spellParameters(parameters)],
    ['sample', route.sample ?? NONE],
    // A preview is no skill of its own.
    ['skill', route.full === undefined ? route.operation.skill : undefined],
  ]
}

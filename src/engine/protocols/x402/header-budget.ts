import type { Catalog } from '../../catalog/catalog.ts'
import { error, type Issue, type Position, warning } from '../../catalog/issue.ts'
import { findNetwork } from '../../networks.ts'
import { createChallenge, HEADER_LIMIT, HEADER_TARGET } from './challenge.ts'

/** Whoever is paid, the address has this length. */
const SOMEBODY = `0x${'0'.repeat(40)}`

export interface HeaderBudgetSettings {
  readonly baseUrl: string
  /** Where a route stands in the file, by its path. */
  readonly at: (path: string) => Position
}

/** How many bytes the PAYMENT-REQUIRED of each paid route takes, were all networks of the catalog offered. */
export function measureHeaders(
  { payments: { x402 }, service, routes }: Catalog,
  baseUrl: string,
): ReadonlyMap<string, number> {
  if (x402 === undefined) return new Map()
  const tills = x402.networks
    .flatMap((id) => findNetwork(id) ?? [])
    .map((network) => ({ network, payTo: SOMEBODY, timeoutSeconds: Math.floor(x402.timeout / 1000) }))
  const settings = { service, baseUrl, tills, nextToken: () => '' }
  return new Map(
    routes.flatMap((route): [string, number][] => {
      const { price } = route.operation
      if (route.kind !== 'paid' || price === undefined) return []
      return [[route.path, createChallenge(route, price, settings).headerBytes]]
    }),
  )
}

/** Routes whose PAYMENT-REQUIRED stays too large after everything that may be left out is left out. */
export function checkHeaderBudget(catalog: Catalog, { baseUrl, at }: HeaderBudgetSettings): Issue[] {
  return [...measureHeaders(catalog, baseUrl)].flatMap(([path, bytes]) => headerIssue(bytes, at(path)) ?? [])
}

/** What is to be said of a header of this size; undefined while it is small enough. */
export function headerIssue(bytes: number, position: Position): Issue | undefined {
  if (bytes <= HEADER_TARGET) return undefined
  const said = `its PAYMENT-REQUIRED header takes ${bytes} bytes`
  const advice =
    'offer fewer networks, shorten the example of its longest parameter, or take fewer parameters'
  return bytes > HEADER_LIMIT
    ? error('header_too_large', position, `${said}, and proxies refuse more than ${HEADER_LIMIT}: ${advice}`)
    : warning(
        'header_large',
        position,
        `${said}; above ${HEADER_TARGET} some facilitators and proxies fail: ${advice}`,
      )
}

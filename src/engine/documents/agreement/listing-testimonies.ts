import type { Json, JsonObject } from '../../json.ts'
import { offerFields } from './challenge-testimonies.ts'
import {
  at,
  listAt,
  membersAt,
  NONE,
  spellAvailable,
  spellParameter,
  spellParameters,
  textAt,
} from './spelling.ts'
import { claimOf, type Claim, type Testimony } from './testimony.ts'

/** What the index at `/` says. */
export function indexTestimony(document: string, index: JsonObject): Testimony {
  const claims = listAt(index, 'routes').map((route): [string, Claim] => [
    textAt(route, 'path') ?? '',
    claimOf(
      ['price', textAt(route, 'price', 'amount') ?? 'free'],
      ['parameters', spellParameters(membersAt(route, 'parameters').map(parameterIn))],
      ['sample', textAt(route, 'sample') ?? NONE],
      ['available', available(route)],
    ),
  ])
  return { document, covers: 'all', claims: new Map(claims) }
}

/** How a parameter stands is the second thing its line says: `string, default "US", example "DE"`. */
const STANDING = /^[^,]*, (required|default ("(?:[^"\\]|\\.)*"|[^,]+))/

function parameterIn([name, line]: [string, Json]): string {
  const [, standing, value] = STANDING.exec(typeof line === 'string' ? line : '') ?? []
  return spellParameter(name, standing === 'required', value?.startsWith('"') ? unquote(value) : value)
}

/** The text itself where it is no JSON. */
function unquote(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : text
  } catch {
    return text
  }
}

/** What the listing by category says. */
export function categoriesTestimony(document: string, categories: JsonObject): Testimony {
  const routes = listAt(categories, 'categories').flatMap((category) => listAt(category, 'routes'))
  const claims = routes.map((route): [string, Claim] => [
    textAt(route, 'path') ?? '',
    claimOf(['price', textAt(route, 'price', 'amount') ?? 'free'], ['available', available(route)]),
  ])
  return { document, covers: 'all', claims: new Map(claims) }
}

/** What the x402 manifest says. */
export function manifestTestimony(document: string, manifest: JsonObject): Testimony {
  const claims = listAt(manifest, 'endpoints').map((endpoint): [string, Claim] => [
    textAt(endpoint, 'path') ?? '',
    claimOf(
      ['price', textAt(endpoint, 'price', 'amount')],
      ['sample', textAt(endpoint, 'sample') ?? NONE],
      ['available', available(endpoint)],
    ),
  ])
  return { document, covers: 'sold by x402', claims: new Map(claims) }
}

/** What the x402 resource listing says, with the offers of each network. */
export function resourcesTestimony(document: string, listing: JsonObject): Testimony {
  const claims = listAt(listing, 'items').map((item): [string, Claim] => [
    textAt(item, 'path') ?? '',
    claimOf(
      ['price', textAt(item, 'priceUsd')],
      ['sample', textAt(item, 'sample') ?? NONE],
      ['available', available(item)],
      ...offerFields(listAt(item, 'accepts')),
    ),
  ])
  return { document, covers: 'sold by x402', claims: new Map(claims) }
}

function available(route: Json): string {
  return spellAvailable(at(route, 'available') !== false)
}

import type { Catalog, Parameter, Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { placedDocuments } from './directory.ts'
import { defineDocument, type Facts } from './document.ts'
import { printJson } from './json-text.ts'
import { countKinds, listedRoutes, priceOf } from './listing.ts'
import { chargingOf, howToPay, isUpfront, SANDBOX, CHARGED_FIRST } from './wording.ts'

/** The free index at `/`: small enough to read whole, complete enough to call everything from. */
export const index = defineDocument('index', (catalog, facts) => {
  const { name, version, description, contact } = catalog.service
  const routes = listedRoutes(catalog)
  return printJson(
    compact({
      name,
      version,
      description,
      sandbox: facts.sandbox,
      notice: facts.sandbox ? SANDBOX : undefined,
      base_url: facts.baseUrl,
      documents: links(catalog, facts),
      contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
      payment: {
        currency: 'USD',
        protocols: facts.protocols,
        how_to_pay: howToPay(catalog, facts),
        charging: chargingOf(routes),
      },
      counts: countKinds(routes),
      routes: routes.map((route) => entry(route, facts)),
    }),
  )
})

function links(catalog: Catalog, { baseUrl }: Facts): JsonObject {
  return Object.fromEntries(placedDocuments(catalog, baseUrl).map(({ name, url }) => [name, url]))
}

function entry(route: Route, facts: Facts): JsonObject {
  const price = priceOf(route)
  return compact({
    method: 'GET',
    path: route.path,
    kind: route.kind,
    price: price === undefined ? undefined : { currency: 'USD', amount: price },
    charging: isUpfront(route) ? CHARGED_FIRST : undefined,
    summary: route.summary,
    category: route.operation.category,
    parameters: Object.fromEntries(route.parameters.map((parameter) => [parameter.name, brief(parameter)])),
    sample: route.sample,
    full: route.full,
    available: facts.available(route.operation),
  })
}

/** A parameter in one line: `integer, required, 1 to 100, example 30`. */
function brief(parameter: Parameter): string {
  const { type, required, list, enum: allowed, minimum, maximum, example } = parameter
  const words = [
    list === undefined ? type : `comma-separated list of at most ${list.maxItems}`,
    required ? 'required' : standing(parameter),
    allowed === undefined ? undefined : `one of ${allowed.join(' | ')}`,
    minimum === undefined
      ? undefined
      : maximum === undefined
        ? `from ${minimum}`
        : `${minimum} to ${maximum}`,
    minimum === undefined && maximum !== undefined ? `at most ${maximum}` : undefined,
    example === undefined ? undefined : `example ${JSON.stringify(example)}`,
  ]
  return words.filter((word) => word !== undefined).join(', ')
}

function standing({ default: value }: Parameter): string {
  return value === undefined || value === '' ? 'optional' : `default ${JSON.stringify(value)}`
}

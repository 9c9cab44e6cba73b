import { colonTemplate, type Route } from '../catalog/catalog.ts'
import { compact, isJsonObject, type JsonObject } from '../json.ts'
import { iconUrl } from './brand.ts'
import { defineDocument, type Facts } from './document.ts'
import { printJson } from './json-text.ts'
import { lastChange, listedRoutes, priceOf } from './listing.ts'

/** What is sold with x402, in the shape of Bazaar’s resource listing: a facilitator’s index of this one service. */
export const x402Resources = defineDocument('x402-resources', (catalog, facts) => {
  const shared: JsonObject = compact({
    lastUpdated: lastChange(catalog),
    iconUrl: iconUrl(catalog, facts.baseUrl),
  })
  const items = listedRoutes(catalog).flatMap((route) => {
    const challenge = route.kind === 'paid' ? facts.paymentRequired(route) : undefined
    return challenge === undefined ? [] : [{ ...item(facts, route, challenge), ...shared }]
  })
  return printJson({
    x402Version: 2,
    items,
    pagination: { limit: items.length, offset: 0, total: items.length },
  })
})

/** The live challenge’s own members, so that the listing cannot differ from it, and what a reader adds to choose. */
function item(facts: Facts, route: Route, challenge: JsonObject): JsonObject {
  const { url, ...resource } = isJsonObject(challenge.resource) ? challenge.resource : {}
  const bazaar = isJsonObject(challenge.extensions) ? challenge.extensions.bazaar : undefined
  return compact({
    resource: url,
    type: 'http',
    x402Version: 2,
    accepts: challenge.accepts,
    ...resource,
    extensions: bazaar === undefined ? undefined : { bazaar },
    method: 'GET',
    path: route.path,
    routeTemplate: route.path.includes('{') ? colonTemplate(route.path) : undefined,
    priceUsd: priceOf(route),
    useCase: route.operation.useWhen,
    sample: route.sample,
    available: facts.available(route.operation),
  })
}

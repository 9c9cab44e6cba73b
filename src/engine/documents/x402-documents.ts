import { type Catalog, colonTemplate, examplePath, type Route } from '../catalog/catalog.ts'
import { compact, isJsonObject, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import { lastChange, listedRoutes, priceOf, usualOffers } from './listing.ts'
import { iconUrl } from './page.ts'
import { addressOf, defineDocument, type Facts, printJson } from './registry.ts'
import { howToPay, SANDBOX, sentence } from './copy.ts'

/** What x402scan has written down (`version`, `resources` as addresses), and what other readers look for beside it. */
export const x402Manifest = defineDocument('x402', (catalog, facts) => {
  const { name, description, ownershipProofs } = catalog.service
  const { baseUrl, sandbox } = facts
  const sold = listedRoutes(catalog).filter(
    (route) => route.kind === 'paid' && facts.paymentRequired(route) !== undefined,
  )
  return printJson(
    compact({
      version: 1,
      x402Version: 2,
      name,
      description: sandbox ? `${SANDBOX} ${sentence(description)}` : sentence(description),
      origin: baseUrl,
      resources: sold.map((route) => baseUrl + examplePath(route)),
      instructions: howToPay(catalog, facts).join(' '),
      // An empty list reads as a claim that failed.
      ownershipProofs: ownershipProofs.length === 0 ? undefined : ownershipProofs,
      payment: payment(catalog, facts, sold),
      endpoints: sold.map((route) => endpoint(route, facts)),
      links: links(catalog, baseUrl),
    }),
  )
})

function payment(catalog: Catalog, facts: Facts, sold: readonly Route[]): JsonObject {
  const offers = usualOffers(catalog, facts)
  const [first] = offers
  return compact({
    protocols: facts.protocols,
    network: first?.network,
    networks: offers.flatMap(({ network }) => network ?? []),
    asset: first?.asset,
    payTo: first?.payTo,
    currency: 'USD',
    priceRange: priceRange(sold),
  })
}

function priceRange(sold: readonly Route[]): JsonObject | undefined {
  const prices = sold.flatMap(({ operation: { price } }) => price ?? [])
  const [first] = prices
  if (first === undefined) return undefined
  return {
    min: formatPrice(prices.reduce((a, b) => (b < a ? b : a), first)),
    max: formatPrice(prices.reduce((a, b) => (b > a ? b : a), first)),
  }
}

function endpoint(route: Route, { baseUrl, available }: Facts): JsonObject {
  const amount = priceOf(route)
  return compact({
    method: route.operation.method,
    path: route.path,
    url: baseUrl + examplePath(route),
    price: amount === undefined ? undefined : { mode: 'fixed', currency: 'USD', amount },
    description: route.summary,
    category: route.operation.category,
    sample: route.sample,
    available: available(route.operation),
  })
}

function links(catalog: Catalog, baseUrl: string): JsonObject {
  const address = (name: 'openapi' | 'x402-resources' | 'llms' | 'agent-card'): string | undefined =>
    addressOf(name, catalog, baseUrl)
  return compact({
    openapi: address('openapi'),
    catalog: address('x402-resources'),
    llms: address('llms'),
    agentCard: address('agent-card'),
  })
}

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
    method: route.operation.method,
    path: route.path,
    routeTemplate: route.path.includes('{') ? colonTemplate(route.path) : undefined,
    priceUsd: priceOf(route),
    useCase: route.operation.useWhen,
    sample: route.sample,
    available: facts.available(route.operation),
  })
}

import { type Catalog, colonTemplate, examplePath, iconUrl, type Route } from '../catalog/catalog.ts'
import { compact, isJsonObject, type JsonObject } from '../base/json.ts'
import { declaredPrice } from '../catalog/price/text.ts'
import { formatPrice, type Micros } from '../base/money.ts'
import { lastChange, listedRoutes, priceOf, usualOffers } from './listing.ts'
import { addressOf, defineDocument, type Facts, operationPath, printJson } from './registry.ts'
import { howToPay, SANDBOX, sentence } from './wording.ts'

/** The members that x402scan documents (`version`, `resources` as addresses), and those that other readers expect. */
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
      resources: [...new Set(sold.map((route) => baseUrl + examplePath(route)))],
      instructions: howToPay(catalog, facts).join(' '),
      // An empty list reads as a failed claim.
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
  const prices = sold.flatMap(({ operation: { price } }): Micros[] =>
    typeof price === 'object' ? [price.lowest, price.highest] : price === undefined ? [] : [price],
  )
  const [first] = prices
  if (first === undefined) return undefined
  return {
    min: formatPrice(prices.reduce((a, b) => (b < a ? b : a), first)),
    max: formatPrice(prices.reduce((a, b) => (b > a ? b : a), first)),
  }
}

function endpoint(route: Route, { baseUrl, available }: Facts): JsonObject {
  return compact({
    method: route.operation.method,
    path: route.path,
    url: baseUrl + examplePath(route),
    price: route.operation.price === undefined ? undefined : declaredPrice(route.operation.price),
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

/** The routes sold with x402, in the format of Bazaar’s resource listing. */
export const x402Resources = defineDocument('x402-resources', (catalog, facts) => {
  const shared: JsonObject = compact({
    lastUpdated: lastChange(catalog),
    iconUrl: iconUrl(catalog.service, facts.baseUrl),
  })
  const items = listedRoutes(catalog).flatMap((route) => {
    const challenge = route.kind === 'paid' ? facts.paymentRequired(route) : undefined
    return challenge === undefined ? [] : [{ ...item(catalog, facts, route, challenge), ...shared }]
  })
  return printJson({
    x402Version: 2,
    items,
    pagination: { limit: items.length, offset: 0, total: items.length },
  })
})

/** The members of the live challenge, so that the listing cannot differ from it, with additions for readers. */
function item(catalog: Catalog, facts: Facts, route: Route, challenge: JsonObject): JsonObject {
  const docs = operationPath(catalog, route)
  const { url, ...resource } = isJsonObject(challenge.resource) ? challenge.resource : {}
  const { price } = route.operation
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
    ...(typeof price === 'object' ? { price: declaredPrice(price) } : { priceUsd: priceOf(route) }),
    useCase: route.operation.useWhen,
    sample: route.sample,
    docs: docs === undefined ? undefined : facts.baseUrl + docs,
    available: facts.available(route.operation),
  })
}

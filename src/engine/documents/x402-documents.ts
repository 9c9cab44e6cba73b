import {
  type Catalog,
  colonTemplate,
  examplePath,
  iconUrl,
  type Route,
  usesTestNetworks,
} from '../catalog/catalog.ts'
import { compact, isJsonObject, type JsonObject } from '../base/json.ts'
import { declaredPrice } from '../catalog/price/text.ts'
import { spellPaths } from '../catalog/route-reference.ts'
import { formatPrice, type Micros } from '../base/money.ts'
import { joinSentences, sentence } from '../base/words.ts'
import { lastChange, listedRoutes, usualOffers } from './listed-operations.ts'
import { viewRoute } from './operation-view.ts'
import { howToPay, moneyNotice } from './payment-guide.ts'
import { addressOf, defineDocument, type Facts, printJson } from './registry.ts'

/** The members that x402scan documents (`version`, `resources` as addresses), and those that other readers expect. */
export const x402Manifest = defineDocument('x402', (catalog, facts) => {
  const { name, description, ownershipProofs } = catalog.service
  const { baseUrl } = facts
  const notice = moneyNotice(catalog, facts)
  const sold = listedRoutes(catalog).filter(
    (route) => route.kind === 'paid' && facts.paymentRequired(route) !== undefined,
  )
  return printJson(
    compact({
      version: 1,
      x402Version: 2,
      name,
      description: joinSentences(notice, sentence(description)),
      origin: new URL(baseUrl).origin,
      resources: [...new Set(sold.map((route) => baseUrl + examplePath(route)))],
      instructions: howToPay(catalog, facts).join(' '),
      // An empty list reads as a proof that has failed.
      ownershipProofs: ownershipProofs.length === 0 ? undefined : ownershipProofs,
      payment: payment(catalog, facts, sold),
      endpoints: sold.map((route) => endpoint(catalog, facts, route)),
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
    testnet: usesTestNetworks(catalog.payments) ? true : undefined,
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

function endpoint(catalog: Catalog, facts: Facts, route: Route): JsonObject {
  const { title, summary, deprecation } = viewRoute(catalog, facts, route)
  return compact({
    method: route.operation.method,
    path: route.path,
    url: facts.baseUrl + examplePath(route),
    title,
    price:
      route.operation.price === undefined
        ? undefined
        : declaredPrice(route.operation.price, route.operation.meter),
    description: summary,
    deprecated: deprecation === '' ? undefined : true,
    category: route.operation.category,
    sample: route.sample,
    available: facts.available(route.operation),
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
  const view = viewRoute(catalog, facts, route)
  const { url, ...resource } = isJsonObject(challenge.resource) ? challenge.resource : {}
  const { price, meter, useWhen } = route.operation
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
    ...(typeof price === 'object' || (price !== undefined && meter !== undefined)
      ? { price: declaredPrice(price, meter) }
      : { priceUsd: price === undefined ? undefined : formatPrice(price) }),
    title: view.title,
    useCase: useWhen === undefined ? undefined : spellPaths(useWhen),
    deprecated: view.deprecation === '' ? undefined : true,
    sample: route.sample,
    docs: view.page === '' ? undefined : facts.baseUrl + view.page,
    available: facts.available(route.operation),
  })
}

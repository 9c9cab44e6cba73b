import { examplePath, type Catalog, type Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import { addressOf } from './directory.ts'
import { defineDocument, type Facts } from './document.ts'
import { printJson } from './json-text.ts'
import { listedRoutes, priceOf, usualOffers } from './listing.ts'
import { howToPay, SANDBOX, sentence } from './wording.ts'

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
    method: 'GET',
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

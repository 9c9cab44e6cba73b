import { readFileSync } from 'node:fs'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { declaredPrice } from '../catalog/price/text.ts'
import { ERRORS } from '../base/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { findSvmNetwork } from '../base/networks.ts'
import { once } from '../base/once.ts'
import type { Facts } from './registry.ts'
import { TEMPLATES } from './template.ts'

/** Component files to merge: `all`, with validation errors as in FastAPI, and one for each protocol. */
const readParts = once((): unknown =>
  JSON.parse(readFileSync(new URL('openapi-components.json', TEMPLATES), 'utf8')),
)

type Components = JsonObject & { readonly schemas: JsonObject }

/** The components that operations refer to; the 402 states when the service charges. */
export function openapiComponents(
  catalog: Catalog,
  protocols: readonly string[],
  charging: string,
): Components {
  const parts = readParts()
  if (!isJsonObject(parts)) throw new TypeError('openapi-components.json is not an object')
  const codes = { Problem: { properties: { code: { examples: codesOf(catalog) } } } }
  const terms = { PaymentRequired: { description: `The offers. Nothing was charged. ${charging}` } }
  const { schemas, ...others } = ['all', ...protocols]
    .map((name) => parts[name])
    .reduce<JsonObject>(merge, {})
  return {
    ...merge(others, { responses: terms }),
    schemas: merge(isJsonObject(schemas) ? schemas : {}, codes),
  }
}

/** The codes of errors without those of ways to pay that are not offered. */
function codesOf({ payments: { x402 }, routes }: Catalog): string[] {
  const { networks = [], schemes = [] } = x402 ?? {}
  const isMetered = routes.some(({ operation }) => operation.meter !== undefined)
  const absent = [
    ...(networks.some((id) => findSvmNetwork(id) !== undefined) ? [] : [/^invalid_exact_svm_/]),
    ...(schemes.includes('upto') || isMetered ? [] : [/permit2|^upto_/]),
    ...(schemes.includes('batch-settlement') ? [] : [/^invalid_batch_settlement_/]),
  ]
  return Object.keys(ERRORS).filter((code) => !absent.some((pattern) => pattern.test(code)))
}

/** Merges objects at every level; members of the first come first. */
function merge(one: JsonObject, other: Json | undefined): JsonObject {
  if (!isJsonObject(other)) return one
  const merged: Record<string, Json> = { ...one }
  for (const [key, value] of Object.entries(other)) {
    const known = merged[key]
    merged[key] = isJsonObject(known) ? merge(known, value) : value
  }
  return merged
}

/** The price declaration, one object that registries of x402 and MPP both read; undefined when free. */
export function paymentInfo(catalog: Catalog, facts: Facts, route: Route): JsonObject | undefined {
  const { price, meter } = route.operation
  if (route.kind !== 'paid' || price === undefined) return undefined
  // By MPP nothing can be charged but what was signed.
  const protocols = facts.protocols.filter((name) => meter === undefined || name === 'x402')
  const offers = facts.protocols.includes('mpp') && meter === undefined ? offersOf(catalog, route) : []
  return {
    price: declaredPrice(price, meter),
    protocols: protocols.map((name) => ({ [name]: terms(catalog, name) })),
    ...(offers.length === 0 ? {} : { offers }),
  }
}

/**
 * The offers of the payment discovery draft: atomic units, where `price` is a decimal. Every token on Tempo has six
 * decimals, as prices have.
 */
function offersOf({ payments: { mpp } }: Catalog, { operation: { price } }: Route): JsonObject[] {
  if (mpp === undefined || price === undefined) return []
  const { method, intent, currency } = mpp
  // The draft's word for a computed amount.
  const amount = typeof price === 'bigint' ? price.toString() : null
  return [{ intent, method, amount, currency }]
}

function terms({ payments: { mpp } }: Catalog, protocol: string): JsonObject {
  if (protocol !== 'mpp' || mpp === undefined) return {}
  return { method: mpp.method, intent: mpp.intent, currency: mpp.currency }
}

const RECEIPTS: Readonly<Record<string, string>> = { x402: 'PAYMENT-RESPONSE', mpp: 'Payment-Receipt' }

/** Headers of a paid 200 response. */
export function receiptHeaders(protocols: readonly string[]): JsonObject {
  const names = protocols.flatMap((protocol) => RECEIPTS[protocol] ?? [])
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

import { readFileSync } from 'node:fs'
import { fillPath, type Catalog, type Route } from '../../src/engine/catalog/catalog.ts'
import { compileText } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames, documents } from '../../src/engine/documents/all.ts'
import type { Facts } from '../../src/engine/documents/registry.ts'
import { exampleAmount } from '../../src/engine/payment/call-price.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'

/** A harbour that sells tides: every kind of route once. */
export const HARBOUR = readFileSync(new URL('../fixtures/documents/catalog.yaml', import.meta.url), 'utf8')

export function compileHarbour(text: string = HARBOUR): Catalog {
  return compileText('catalog.yaml', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  }).catalog
}

export const FACTS: Facts = {
  baseUrl: 'https://harbour.example',
  sandbox: false,
  available: () => true,
  paymentRequired,
  protocols: ['x402'],
  mcpServers: new Map(),
}

/** The same with a companion server. */
export const WITH_SERVER: Facts = {
  ...FACTS,
  protocols: ['x402', 'mpp'],
  mcpServers: new Map([['log', 'https://harbour.example/mcp/log']]),
}

/** What the live 402 of a route would carry. */
function paymentRequired(route: Route): JsonObject {
  const path = fillPath(route.path, (name) =>
    String(route.parameters.find((parameter) => parameter.name === name)?.example),
  )
  return {
    x402Version: 2,
    error: 'Payment required',
    resource: {
      url: `https://harbour.example${path}`,
      description: route.summary,
      mimeType: 'application/json',
      serviceName: 'Harbour data',
      tags: ['tides', 'ships'],
    },
    accepts: ['eip155:8453', 'eip155:137'].map((network) => ({
      scheme: 'exact',
      network,
      amount: String(exampleAmount(route.operation)),
      asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      payTo: '0x1111111111111111111111111111111111111111',
      maxTimeoutSeconds: 60,
      extra: { name: 'USD Coin', version: '2' },
    })),
    extensions: { bazaar: { info: { input: { type: 'http', method: 'GET' } }, schema: {} }, token: 'secret' },
  }
}

export function render(name: string, catalog: Catalog = compileHarbour(), facts: Facts = FACTS): string {
  const found = documents.find((document) => document.name === name)
  if (found === undefined) throw new Error(`no document ${name}`)
  return found.render(catalog, facts)
}

export function renderJson(name: string, catalog?: Catalog, facts?: Facts): JsonObject {
  const value: unknown = JSON.parse(render(name, catalog, facts))
  if (!isJsonObject(value)) throw new Error(`${name} is no object`)
  return value as JsonObject
}

/** The value at a path of keys; undefined where there is none. */
export function at(value: Json | undefined, ...keys: readonly (string | number)[]): Json | undefined {
  return keys.reduce<Json | undefined>((found, key) => {
    if (Array.isArray(found)) return typeof key === 'number' ? found[key] : undefined
    return isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }, value)
}

/** An object’s members; none when it is something else. */
export function members(value: Json | undefined): [string, Json][] {
  return isJsonObject(value) ? Object.entries(value) : []
}

export function items(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

import {
  extractDiscoveryInfo,
  isValidRouteTemplate,
  sanitizeResourceServiceMetadata,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
  type DiscoveryExtension,
} from '@x402/extensions/bazaar'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import t from 'tap'
import type { Json } from '../../src/engine/base/json.ts'
import { at, items, members } from '../support/documents.ts'
import {
  BASE_URL,
  exampleCall,
  objectIn,
  openProductionService,
  paid,
  textAt,
} from './support/shipped-service.ts'

const service = await openProductionService(t)

/** Every value under a key, however deep. */
function collect(value: Json | undefined, key: string): Json[] {
  return [
    ...items(value).flatMap((item) => collect(item, key)),
    ...members(value).flatMap(([name, member]) => [
      ...(name === key ? [member] : []),
      ...collect(member, key),
    ]),
  ]
}

async function challengeOf(path: string): Promise<ReturnType<typeof decodePaymentRequiredHeader>> {
  const { headers } = await service.ask(path)
  return decodePaymentRequiredHeader(headers.get('payment-required') ?? '')
}

t.test('gives every route an example that a facilitator validates', async (t) => {
  for (const { path } of paid) {
    const { extensions } = await challengeOf(exampleCall(path))
    const bazaar = extensions?.['bazaar'] as DiscoveryExtension
    t.match(validateDiscoveryExtension(bazaar), { valid: true }, path)
    t.match(validateDiscoveryExtensionSpec({ ...bazaar }), { valid: true }, path)
    const said = objectIn(JSON.stringify(bazaar))
    t.strictSame(collect(said, '$ref'), [], path)
    // The two places where AgentCash looks for what goes in and what comes out.
    t.ok(at(said, 'schema', 'properties', 'input', 'properties', 'queryParams'), path)
    t.equal(at(said, 'schema', 'properties', 'output', 'properties', 'example', 'type'), 'object', path)
  }
})

t.test('is found in a facilitator’s index under the address it is sold at', async (t) => {
  for (const { path } of paid) {
    const challenge = await challengeOf(exampleCall(path))
    const [accepted] = challenge.accepts
    if (accepted === undefined) throw new Error(`${path} offers nothing`)
    const { resource, extensions } = challenge
    const found = extractDiscoveryInfo(
      {
        x402Version: 2,
        accepted,
        payload: {},
        resource,
        ...(extensions === undefined ? {} : { extensions }),
      },
      accepted,
    )
    const canonical = path.replace(/\{(\w+)\}/g, ':$1')
    t.match(found, { method: 'GET', x402Version: 2, resourceUrl: BASE_URL + canonical }, path)
    const template = textAt(objectIn(JSON.stringify(extensions?.['bazaar'] ?? {}))['routeTemplate'])
    t.equal(template, path.includes('{') ? canonical : '', path)
    if (template !== '') t.ok(isValidRouteTemplate(template), path)
    t.equal(sanitizeResourceServiceMetadata(resource).serviceName, 'Game-market and utility data')
    const { description = '' } = resource
    t.ok(description.length > 0 && description.length <= 500, path)
  }
})

import {
  validateDiscoveryExtension,
  type DiscoveryExtension,
  type DiscoveryResourcesResponse,
} from '@x402/extensions/bazaar'
import t from 'tap'
import { readHeader } from '../support/payment.ts'
import { at, items } from '../support/documents.ts'
import {
  BASE_URL,
  exampleCall,
  objectIn,
  openProductionService,
  paid,
  textAt,
} from './support/shipped-service.ts'

const service = await openProductionService(t)

t.test('lists for x402scan and its like exactly the addresses that are sold', async (t) => {
  const text = await service.read('/.well-known/x402')
  t.equal(await service.read('/.well-known/x402.json'), text)
  const manifest = objectIn(text)
  t.equal(manifest['version'], 1)
  const addresses = items(manifest['resources']).map(textAt)
  t.equal(addresses.length, paid.length)
  t.equal(new Set(addresses).size, paid.length)
  for (const address of addresses) {
    t.equal(new URL(address).origin, BASE_URL)
    t.notMatch(address, /[{}]|%7B|\/:/i)
    t.equal((await service.ask(address)).status, 402, address)
  }
  // An empty list of proofs would read as one that failed.
  t.notOk('ownershipProofs' in manifest)
})

t.test('offers in Bazaar listings exactly what the service honours', async (t) => {
  const text = await service.read('/x402-resources')
  t.equal(await service.read('/.well-known/x402-resources'), text)
  const listing = objectIn(text)
  const typed: DiscoveryResourcesResponse = JSON.parse(text)
  t.equal(typed.x402Version, 2)
  t.strictSame(typed.pagination, { limit: paid.length, offset: 0, total: paid.length })
  const paths = items(listing['items']).map((item) => textAt(at(item, 'path')))
  t.strictSame(paths.toSorted(), paid.map(({ path }) => path).toSorted())
  for (const item of items(listing['items'])) {
    const path = textAt(at(item, 'path'))
    const live = readHeader(await service.ask(exampleCall(path)), 'payment-required')
    t.strictSame(at(item, 'accepts'), live['accepts'], path)
    t.equal(at(item, 'resource'), at(live, 'resource', 'url'), path)
    const [listed, issued] = [item, live].map((each) => at(each, 'extensions', 'bazaar'))
    t.strictSame(at(listed, 'info', 'input'), at(issued, 'info', 'input'), path)
    t.match(
      validateDiscoveryExtension(
        typed.items.find(({ resource }) => resource === at(item, 'resource'))?.extensions?.[
          'bazaar'
        ] as DiscoveryExtension,
      ),
      { valid: true },
      path,
    )
    t.equal(at(item, 'type'), 'http')
    const changed = textAt(at(item, 'lastUpdated'))
    t.equal(new Date(changed).toISOString(), changed)
  }
})

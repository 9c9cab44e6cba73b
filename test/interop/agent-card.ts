import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import { ClientFactory as ClientFactory03 } from '@a2a-js/sdk-0.3/client'
import t from 'tap'
import { createServer } from 'node:http'
import { at, items } from '../support/documents.ts'
import { BASE_URL, objectIn, openProductionService, textAt } from './support/shipped-service.ts'

const service = await openProductionService(t)
const CARD = '/.well-known/agent-card.json'
const SKILLS = [
  'steam-top-sellers',
  'steam-deals',
  'web-research',
  'summarize',
  'extract-structured',
  'memory-write',
  'memory-search',
  'steam-app-intel',
]

t.test('describes the service of the specification to a reader of the card', async (t) => {
  const answer = await service.ask(CARD)
  const text = await answer.text()
  t.equal(await service.read('/.well-known/agent.json'), text)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  t.match(answer.headers.get('cache-control'), /max-age=\d+/)
  t.ok(answer.headers.get('etag'))
  const card = objectIn(text)
  t.match(card, {
    protocolVersion: '1.0',
    version: '1.2.0',
    url: BASE_URL,
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    payments: { protocol: 'x402', version: 2, network: 'eip155:8453', asset: 'USDC' },
  })
  t.strictSame(
    items(card['skills'])
      .map((skill) => textAt(at(skill, 'id')))
      .toSorted(),
    SKILLS.toSorted(),
  )
  for (const each of [
    at(card, 'provider', 'organization'),
    at(card, 'provider', 'url'),
    card['name'],
    card['description'],
  ])
    t.match(each, /\S/)
  for (const each of items(card['additionalInterfaces']))
    for (const name of ['transport', 'url', 'description']) t.match(at(each, name), /\S/)
  const guide = await service.ask(textAt(card['documentationUrl']))
  t.equal(guide.status, 200)
  t.match(guide.headers.get('content-type'), /^text\/plain/)
})

t.test('satisfies a registry that reads cards of A2A 1.0', async (t) => {
  const card = await service.readJson(CARD)
  for (const name of ['name', 'description', 'version']) t.match(card[name], /\S/, name)
  for (const face of items(card['supportedInterfaces'])) {
    t.equal(at(face, 'url'), BASE_URL)
    // Of the standard bindings it speaks none.
    t.notMatch(at(face, 'protocolBinding'), /^(?:JSONRPC|GRPC|HTTP\+JSON)$/)
    t.match(at(face, 'protocolVersion'), /^\d+\.\d+$/)
  }
  t.ok(items(card['supportedInterfaces']).length > 0)
  for (const skill of items(card['skills'])) {
    for (const name of ['id', 'name', 'description']) t.match(at(skill, name), /\S/)
    t.ok(items(at(skill, 'tags')).length > 0)
  }
})

t.test('makes A2A clients refuse cleanly, before they post a message', async (t) => {
  const requests: string[] = []
  const text = (await service.read(CARD)).replaceAll(BASE_URL, 'http://HERE')
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    const here = `127.0.0.1:${request.socket.localPort}`
    response.setHeader('Content-Type', 'application/json').end(text.replaceAll('HERE', here))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const url = typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : ''

  const compatible = { legacyCompat: { enabled: true } }
  const resolver = new DefaultAgentCardResolver(compatible)
  const both = new ClientFactory({
    transports: [new JsonRpcTransportFactory(compatible), new RestTransportFactory(compatible)],
    cardResolver: resolver,
  })
  const attempts: readonly (() => Promise<unknown>)[] = [
    () => new ClientFactory().createFromUrl(url),
    () => both.createFromUrl(url),
    () => new ClientFactory03().createFromUrl(url),
  ]
  for (const attempt of attempts) await t.rejects(attempt(), /No compatible transport/)
  t.equal((await resolver.resolve(url)).skills.length, SKILLS.length)
  t.strictSame([...new Set(requests)], [`GET ${CARD}`])
})

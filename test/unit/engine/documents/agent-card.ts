import t from 'tap'
import type { Json } from '../../../../src/engine/base/json.ts'
import { at, compileHarbour, FACTS, HARBOUR, items, renderJson } from '../../../support/documents.ts'

const card = renderJson('agent-card')

function skill(id: string, of: Json = card): Json | undefined {
  return items(at(of, 'skills')).find((each) => at(each, 'id') === id)
}

t.test('tells agents the provider and that it speaks plain HTTP', async (t) => {
  t.match(card, {
    protocolVersion: '1.0',
    name: 'Harbour data',
    description: 'Tides and ship movements for agents, sold per call.',
    url: 'https://harbour.example',
    provider: { organization: 'Harbour office', url: 'https://office.example' },
    version: '1.5.0',
    documentationUrl: 'https://harbour.example/llms.txt',
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
  })
})

t.test('names its own transport, so that A2A clients of both versions refuse cleanly', async (t) => {
  const known = ['JSONRPC', 'GRPC', 'HTTP+JSON']
  t.equal(at(card, 'preferredTransport'), 'HTTP+X402')
  t.strictSame(at(card, 'supportedInterfaces'), [
    { url: 'https://harbour.example', protocolBinding: 'HTTP+X402', protocolVersion: '1.0' },
  ])
  const transports = items(at(card, 'additionalInterfaces')).map((each) => at(each, 'transport'))
  t.strictSame(transports, ['HTTP'])
  for (const name of known) t.notMatch(JSON.stringify(card), `"${name}"`)
})

t.test('states the means of payment as the 402 offers them, with x402 only', async (t) => {
  t.strictSame(at(card, 'payments'), {
    protocol: 'x402',
    version: 2,
    network: 'eip155:8453',
    asset: 'USDC',
    assetAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  })
  const unpaid = renderJson('agent-card', undefined, { ...FACTS, paymentRequired: () => undefined })
  t.equal(at(unpaid, 'payments'), undefined)
})

t.test('states what each skill costs and where it is called', async (t) => {
  t.strictSame(skill('tides'), {
    id: 'tides',
    name: 'Tides',
    description:
      'Returns the next high and low waters of a port. Use when: You plan an arrival and know the port. ' +
      'Price: $0.005 per call. GET https://harbour.example/paid/tides/{port}',
    tags: ['tides', 'x402'],
    examples: ['high water in Bristol tonight', 'when is low tide'],
    inputModes: ['application/json'],
    outputModes: ['application/json'],
    available: true,
  })
})

t.test('lists a skill that is unavailable without price and address, and says so', async (t) => {
  for (const id of ['log-note', 'pilot']) {
    t.match(skill(id), { available: false, description: /Not available now\.$/ })
    t.notMatch(at(skill(id), 'description'), /Price|\/mcp\//)
  }
  const down = renderJson('agent-card', undefined, { ...FACTS, available: ({ id }) => id !== 'tides' })
  t.match(skill('tides', down), { available: false })
})

t.test('lists a served companion server as an interface and its tools as skills', async (t) => {
  const mcpServers = new Map([['log', 'https://mcp.example/mcp']])
  const served = renderJson('agent-card', undefined, { ...FACTS, mcpServers })
  t.strictSame(at(served, 'additionalInterfaces', 1), {
    transport: 'MCP',
    url: 'https://mcp.example/mcp',
    description: 'What ships have noted.',
  })
  t.match(skill('log-note', served), {
    available: true,
    description:
      /Price: \$0\.002 per call\. Charged first\. MCP tool log_note at https:\/\/mcp\.example\/mcp$/,
  })
  t.match(skill('tides', served), { description: /GET .* MCP tool tides at/ })
})

t.test('names the icon, unless another file has its path', async (t) => {
  t.equal(at(card, 'iconUrl'), 'https://harbour.example/favicon.svg')
  const announced = compileHarbour(`${HARBOUR}files: { /favicon.svg: { planned: true } }\n`)
  t.equal(at(renderJson('agent-card', announced), 'iconUrl'), undefined)
})

t.test('marks a sandbox', async (t) => {
  const sandbox = renderJson('agent-card', undefined, { ...FACTS, sandbox: true })
  t.match(at(sandbox, 'description'), /^Sandbox: payments are play money/)
})

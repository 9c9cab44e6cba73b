import t from 'tap'
import type { Json } from '../../../../src/engine/base/json.ts'
import { at, compileHarbour, FACTS, HARBOUR, items, renderJson } from '../../../support/documents.ts'

const entries = items(at(renderJson('ard'), 'entries'))

t.test('an agent that searches for a capability finds the card, or else the API', async (t) => {
  t.equal(at(renderJson('ard'), 'specVersion'), '1.0')
  const told = (listed: readonly Json[]): unknown[] =>
    listed.map((entry) => [at(entry, 'identifier'), at(entry, 'type'), at(entry, 'url')])
  t.strictSame(told(entries), [
    [
      'urn:air:harbour.example:agent:harbour-data',
      'application/a2a-agent-card+json',
      'https://harbour.example/.well-known/agent-card.json',
    ],
  ])
  t.strictSame(at(entries[0], 'representativeQueries'), ['high water in Bristol tonight', 'when is low tide'])
  const plain = compileHarbour(HARBOUR.replace(/^ *skill: .*\n/gm, ''))
  const [api, ...others] = items(at(renderJson('ard', plain), 'entries'))
  t.strictSame(others, [])
  t.strictSame(told([api ?? null]), [
    [
      'urn:air:harbour.example:api:harbour-data',
      'application/openapi+json',
      'https://harbour.example/openapi.json',
    ],
  ])
  t.strictSame(at(api ?? null, 'representativeQueries'), at(entries[0], 'representativeQueries'))
})

t.test('lists at most five questions, all from the catalog', async (t) => {
  const silent = renderJson('ard', compileHarbour(HARBOUR.replace(/ {4}queries:.*\n/g, '')))
  for (const entry of items(at(silent, 'entries'))) t.equal(at(entry, 'representativeQueries'), undefined)
  const many = compileHarbour(HARBOUR.replace(/queries: \[high.*\n/, 'queries: [a, b, c, d, e]\n'))
  const five = renderJson('ard', many)
  t.equal(items(at(five, 'entries', 0, 'representativeQueries')).length, 5)
})

t.test('leaves out what is unavailable now', async (t) => {
  t.notMatch(JSON.stringify(entries), 'pilot')
  t.notMatch(JSON.stringify(entries[0]), 'log')
  const down = renderJson('ard', undefined, { ...FACTS, available: () => false })
  t.strictSame(
    items(at(down, 'entries')).map((entry) => at(entry, 'capabilities')),
    [[]],
  )
})

t.test('lists a companion server once it is served', async (t) => {
  const mcpServers = new Map([['log', 'https://mcp.example/mcp']])
  const served = renderJson('ard', undefined, { ...FACTS, mcpServers })
  t.strictSame(at(served, 'entries', 1), {
    identifier: 'urn:air:harbour.example:mcp:log',
    displayName: 'Harbour log',
    type: 'application/mcp-server-card+json',
    url: 'https://mcp.example/mcp/server-card',
    description: 'What ships have noted.',
    capabilities: ['tides', 'log_note'],
    representativeQueries: [
      'high water in Bristol tonight',
      'note that the Aurora has left',
      'when is low tide',
    ],
  })
})

import t from 'tap'
import { at, compileHarbour, FACTS, items, members, renderJson } from '../../../support/documents.ts'

const index = renderJson('index')

function route(path: string) {
  return items(at(index, 'routes')).find((entry) => at(entry, 'path') === path)
}

t.test('lets an agent call a route from the index alone', async (t) => {
  t.strictSame(route('/paid/ships/moves'), {
    method: 'GET',
    path: '/paid/ships/moves',
    kind: 'paid',
    price: { currency: 'USD', amount: '0.250000' },
    title: 'Ship moves',
    charging: 'Charged first',
    summary: 'Lists arrivals and departures of up to 3 ports',
    category: 'ships',
    parameters: {
      ports: 'comma-separated list of at most 3, required, example "bristol,cork"',
      kind: 'string, default "all", one of all | arrivals | departures',
      since: 'string, optional',
    },
    sample: '/sample/ships/moves',
    available: true,
  })
  t.strictSame(at(route('/paid/tides/{port}'), 'parameters'), {
    port: 'string, required, example "bristol"',
    days: 'integer, default 2, 1 to 14',
  })
  t.strictSame(at(route('/paid/berths/{berth}'), 'parameters'), {
    berth: 'integer, required, from 1, example 7',
  })
})

t.test('lists previews and free routes without a price', async (t) => {
  t.equal(at(route('/sample/tides'), 'price'), undefined)
  t.equal(at(route('/sample/tides'), 'full'), '/paid/tides/{port}')
  t.equal(at(route('/clock'), 'price'), undefined)
})

t.test('counts what it lists', async (t) => {
  t.strictSame(at(index, 'counts'), { paid: 3, sample: 2, free: 1 })
})

t.test('links every other document', async (t) => {
  const links = members(at(index, 'documents'))
  t.strictSame(
    links.map(([name]) => name),
    Object.entries(compileHarbour().documents).flatMap(([name, { planned }]) => (planned ? [] : [name])),
  )
  t.equal(at(index, 'documents', 'index'), 'https://harbour.example/')
  t.equal(at(index, 'documents', 'agent-card'), 'https://harbour.example/.well-known/agent-card.json')
})

t.test('names companion servers and their tools only while they are served', async (t) => {
  t.equal(at(index, 'mcp_servers'), undefined)
  const mcpServers = new Map([['log', 'https://harbour.example/mcp/log']])
  const served = renderJson('index', compileHarbour(), { ...FACTS, mcpServers })
  t.strictSame(at(served, 'mcp_servers'), [
    {
      name: 'log',
      title: 'Harbour log',
      description: 'What ships have noted',
      url: 'https://harbour.example/mcp/log',
      docs: 'https://harbour.example/docs/servers/log',
      tools: [
        {
          name: 'tides',
          price: { currency: 'USD', amount: '0.005000' },
          title: 'Tides',
          summary: 'Returns the next high and low waters of a port',
          parameters: { port: 'string, required, example "bristol"', days: 'integer, default 2, 1 to 14' },
        },
        {
          name: 'log_note',
          price: { currency: 'USD', amount: '0.002000' },
          title: 'Harbour note',
          charging: 'Charged first',
          summary: 'Writes a note into the harbour log',
          parameters: { text: 'string, required, example "Aurora has left"' },
        },
      ],
    },
  ])
})

t.test('explains how to pay next to the prices', async (t) => {
  t.strictSame(at(index, 'payment', 'protocols'), ['x402'])
  t.match(at(index, 'payment', 'how_to_pay', 0), '402')
})

t.test('marks a route that is unavailable now', async (t) => {
  const down = renderJson('index', compileHarbour(), { ...FACTS, available: ({ id }) => id !== 'tides' })
  t.equal(at(down, 'routes', 0, 'available'), false)
  t.equal(at(down, 'routes', 1, 'available'), true)
})

import t from 'tap'
import { compileHarbour, FACTS, HARBOUR, render } from '../../support/documents.ts'

const guide = render('llms-full')

t.test('tells an agent how to call each route and what it returns', async (t) => {
  const [, tides = ''] = guide.split('### GET /paid/tides/{port} ')
  t.match(tides, /^\(\$0\.005000\)\n/)
  t.match(tides, '- `port`: string, required, example "bristol". Name of the port.\n')
  t.match(tides, '- `days`: integer, default 2, 1 to 14.\n')
  t.match(tides, 'Request: `GET https://harbour.example/paid/tides/bristol`')
  const [, answer = ''] = /```json\n(.*?)\n```/s.exec(tides) ?? []
  t.match(JSON.parse(answer), { endpoint: '/paid/tides/{port}', port: 'bristol' })
  t.match(guide, 'GET https://harbour.example/paid/ships/moves?ports=bristol,cork`')
})

t.test('leaves out what is unavailable, and lists tools once they are served', async (t) => {
  const down = render('llms-full', compileHarbour(), { ...FACTS, available: ({ id }) => id !== 'tides' })
  t.notMatch(down, 'tides/{port}')
  t.notMatch(guide, 'log_note')
  const mcpServers = new Map([['log', 'https://mcp.example/mcp']])
  const served = render('llms-full', compileHarbour(), { ...FACTS, mcpServers })
  t.match(served, '## Harbour log (MCP)')
  t.match(served, '### log_note ($0.002000)')
  t.match(served, 'A tool of the MCP server at https://mcp.example/mcp')
})

t.test('escapes catalog text that looks like a heading, a list or a fence', async (t) => {
  for (const odd of ['# Free now', '- item', '1. first', '> quoted', '``` text', '---']) {
    const text = HARBOUR.replace('Heights are in metres above chart datum.', JSON.stringify(odd))
    const lines = render('llms-full', compileHarbour(text)).split('\n')
    t.notOk(
      lines.some((line) => line.startsWith(odd)),
      odd,
    )
  }
})

import t from 'tap'
import { compileHarbour, FACTS, HARBOUR, render } from '../../../support/documents.ts'

const text = render('llms')

t.test('follows the format of llmstxt.org', async (t) => {
  const lines = text.split('\n')
  t.equal(lines[0], '# Harbour data')
  t.equal(lines[2], '> Tides and ship movements for agents, sold per call.')
  t.equal(lines.filter((line) => line.startsWith('# ')).length, 1)
  const sections = text
    .slice(text.indexOf('\n## '))
    .split('\n')
    .filter((line) => line !== '')
  for (const line of sections) t.match(line, /^(?:## \S|- \[[^\]]+\]\(https:\/\/harbour\.example\/[^)]*\))/)
  t.strictSame(
    lines.filter((line) => line.startsWith('## ')),
    ['## Tides & currents', '## Ships', '## Free endpoints', '## Optional'],
  )
  t.ok(Buffer.byteLength(text) < 8000)
})

t.test('lists each paid path once, with its price, use and parameters', async (t) => {
  t.equal(text.split('/paid/tides/').length, 2)
  t.equal(text.split('/paid/ships/moves').length, 2)
  t.equal(text.split('/paid/berths/').length, 2)
  t.match(
    text,
    '- [Tides](https://harbour.example/paid/tides/{port}): $0.005. Returns the next high and low waters of a port. Use when: You plan an arrival and know the port. Takes port*, days=2. [Preview](https://harbour.example/sample/tides) takes port=bristol.\n',
  )
  t.match(text, 'Use when you watch several ports at once. Takes ports*, kind=all, since. Preview.\n')
  t.match(text, '- [Clock](https://harbour.example/clock): free. Tells the harbour time.\n')
})

t.test('explains paying in at most six lines and names the networks that work now', async (t) => {
  const steps = (protocols: readonly string[]) => {
    const [, block = ''] = render('llms', compileHarbour(), { ...FACTS, protocols }).split('How to pay:\n\n')
    return block.split('\n\n')[0]?.split('\n') ?? []
  }
  t.match(steps(['x402'])[1], 'Base (eip155:8453), Polygon (eip155:137)')
  t.equal(steps(['x402']).length, 5)
  t.equal(steps(['x402', 'mpp']).length, 6)
  t.notMatch(steps(['x402']).join('\n'), 'MPP')
  t.notMatch(steps(['mpp']).join('\n'), 'PAYMENT-SIGNATURE')
})

t.test('names the Markdown page of a route, of which every route has one', async (t) => {
  const told = 'Tides is described in full at https://harbour.example/docs/paid_tides_port.md;'
  t.match(text, told)
  const silent = compileHarbour(
    HARBOUR.replace('  docs: /docs\n', '  docs: { paths: [/docs], planned: true }\n'),
  )
  t.notMatch(render('llms', silent), 'described in full')
})

t.test('lists only routes that answer', async (t) => {
  const down = render('llms', compileHarbour(), { ...FACTS, available: ({ id }) => id !== 'ships/moves' })
  t.notMatch(down, 'ships/moves')
  t.match(down, '/paid/tides/')
})

t.test('keeps catalog text on its line and escapes markup in it', async (t) => {
  const odd = HARBOUR.replace(
    'summary: Says who lies at a berth',
    'summary: "Says <who> lies at\\n a \'berth\' & why?"',
  )
  t.match(
    render('llms', compileHarbour(odd)),
    "Says \\<who\\> lies at a 'berth' & why? Deprecated: it still answers, and may be removed. Takes berth*.",
  )
})

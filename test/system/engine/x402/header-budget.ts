import t from 'tap'
import { compileText } from '../../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../../src/engine/documents/all.ts'
import { checkHeaderBudget, headerIssue, measureHeaders } from '../../../../src/engine/x402/x402-challenge.ts'
import { runProgram } from '../../../support/server.ts'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const AT = { line: 3, column: 5, width: 9 }

t.test('sets its limits where proxies and facilitators have theirs', async (t) => {
  t.equal(headerIssue(3_000, AT), undefined)
  t.match(headerIssue(3_001, AT), { severity: 'warning', code: 'header_large', position: AT })
  t.match(headerIssue(4_096, AT), { severity: 'warning', code: 'header_large' })
  t.match(headerIssue(4_097, AT), { severity: 'error', code: 'header_too_large', position: AT })
})

/** A catalog with one route whose required example is this long. */
function wordy(length: number): string {
  return `catalog: 1
service: { name: Wordy, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base, polygon, arbitrum, avalanche] } }
routes:
  /paid/words:
    price: 0.01
    summary: Takes a long text
    parameters:
      text: { type: string, required: true, maxLength: 4000, example: ${'x'.repeat(length)} }
    example: { ok: true }
`
}

function judge(length: number) {
  const text = wordy(length)
  const { catalog, at } = compileText('c.yaml', text, {
    handlers: undefined,
    documents: [],
    read: () => undefined,
  })
  return checkHeaderBudget(catalog, { baseUrl: 'https://api.example.com', at })
}

t.test('warns the operator of a challenge that grows too large, at the route', async (t) => {
  t.strictSame(judge(100), [])
  t.match(judge(800), [{ code: 'header_large', position: { line: 5, column: 3 } }])
  t.match(judge(2_000), [{ code: 'header_too_large', position: { line: 5, column: 3 } }])
})

t.test(
  'keeps the shipped routes small while channels are offered, and one of four networks is Solana',
  async (t) => {
    const read = (path: string): Buffer => readFileSync(join(ROOT, path))
    const text = read('catalog.yaml')
      .toString('utf8')
      .replace(
        /networks: \[.*\]/,
        'networks: [base, polygon, arbitrum, solana]\n    schemes: [batch-settlement, exact]',
      )
    const inputs = { handlers: undefined, documents: documentNames, read }
    const { catalog, at } = compileText('catalog.yaml', text, inputs)
    t.strictSame(catalog.payments.x402?.schemes, ['batch-settlement', 'exact'])
    t.strictSame(checkHeaderBudget(catalog, { baseUrl: 'https://market.example.com', at }), [])
  },
)

t.test('counts the offer of channels', (t) => {
  const least = (schemes: string): number => {
    const text = wordy(100).replace('networks: [', `schemes: [${schemes}], networks: [`)
    const { catalog } = compileText('c.yaml', text, {
      handlers: undefined,
      documents: [],
      read: () => undefined,
    })
    return Math.max(...measureHeaders(catalog, 'https://api.example.com').values())
  }
  t.ok(least('batch-settlement, exact') > least('exact'))
  t.end()
})

t.test('check and serve print the same warning', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'catalog.yaml')
  writeFileSync(file, wordy(2_000).replace('    price', '    handler: ping\n    price'))
  const checked = await runProgram(['check', file])
  t.equal(checked.code, 1)
  t.match(checked.stdout, /catalog\.yaml:5:3 header_too_large/)
  const served = await runProgram(['serve', '--catalog', file, '--port', '0', '--data-dir', directory])
  t.equal(served.code, 1)
  t.match(served.stderr, /header_too_large/)
})

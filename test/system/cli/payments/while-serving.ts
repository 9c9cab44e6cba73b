import t from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { onchainClient } from '../../../support/base-chain.ts'
import { parse } from '../../../support/ledger-fixture.ts'
import { addressOf, challengeOf, sign } from '../../../support/payment.ts'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
const server = await startServer({ args: ['--sandbox', '--offline'], dataDir })
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const CALL = '/paid/util/workday?country=DE&date=2026-12-23&days=3'

function payments(...words: string[]) {
  return runProgram(['payments', ...words, '--sandbox', '--data-dir', dataDir])
}

function networkOf(stdout: string): JsonObject {
  const [network] = parse(stdout)['networks'] as JsonObject[]
  return network ?? {}
}

t.test('lists and reconciles payments while the server serves', async (t) => {
  const bills = []
  for (let number = 0; number < 2; number += 1) {
    // Asked for the same thing, the second would get the first answer while that is not known to have arrived.
    const { code, stdout } = await runProgram(
      ['pay', CALL.replace('days=3', `days=${3 - number}`), '--json'],
      { DATA_DIR: dataDir },
    )
    t.equal(code, 0)
    bills.push(parse(stdout))
  }
  const list = await payments('list', '--json')
  t.equal(list.code, 0)
  const rows = JSON.parse(list.stdout) as JsonObject[]
  t.strictSame(
    rows.map((row) => [row['payment'], row['transaction']]),
    bills.map((bill) => [bill['payment'], bill['transaction']]).toReversed(),
  )
  t.match(rows, [{ charged: 'yes', amount: '0.002000', payer: addressOf(evm.payerKey) }, {}])
  const [{ payment } = {}] = rows
  if (typeof payment !== 'string') throw new Error(list.stdout)
  const shown = await payments('show', payment, '--json')
  t.match(parse(shown.stdout), { payment, charged: 'yes', network: 'eip155:84532' })
  const sheet = await payments('export')
  t.equal(sheet.stdout.trim().split('\n').length, 3)
  const pruned = await payments('prune', '--before', '1ms', '--json')
  t.match(parse(pruned.stdout), { records: 0, kept: 2 }, 'their answers are still given again')
  const right = await payments('reconcile', '--json')
  t.equal(right.code, 0)
  t.match(networkOf(right.stdout), { agreed: 2, differences: [] })
  t.equal(right.stderr, '', 'nothing but the result where nobody watches')
  const again = await runProgram(['pay', CALL, '--json'], { DATA_DIR: dataDir })
  t.equal(again.code, 0, 'the server sells as before')
})

t.test('reports money that arrived without a purchase', async (t) => {
  const payment = await sign(await challengeOf(`${server.url}${CALL}`), evm.payerKey)
  const transaction = await onchainClient(evm).submit(payment)
  const ran = await payments('reconcile', '--json')
  t.equal(ran.code, 2)
  t.match(networkOf(ran.stdout), {
    agreed: 3,
    differences: [{ kind: 'not_in_ledger', chain: { transaction } }],
  })
})

t.test('lists the payments of a sandbox that has ended, and says that its chain is gone', async (t) => {
  await server.stop()
  t.match(await payments('list'), { code: 0, stdout: /revenue: 0\.006000 USDC/ })
  const said = 'eip155:84532, x402: could not be checked: its node does not answer'
  t.match(await payments('reconcile'), { code: 1, stdout: '', stderr: said })
})

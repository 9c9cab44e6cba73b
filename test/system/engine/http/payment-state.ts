import t from 'tap'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'

t.test('serves the payment at the Location of a 503', async (t) => {
  const server = await startServer({ args: ['--sandbox', '--offline'] })
  t.teardown(() => server.stop())
  const { stdout } = await runProgram(['pay', '--json', `${server.url}/paid/ping`], {
    DATA_DIR: server.dataDir,
  })
  const bill: unknown = JSON.parse(stdout)
  t.match(bill, { status: 200, charged: 'yes', payment: /^pay_[A-Za-z0-9_-]{22}$/ })
  const { payment, transaction } = bill as { payment: string; transaction: string }
  const response = await fetch(`${server.url}/payments/${payment}`)
  t.equal(response.status, 200)
  t.equal(response.headers.get('cache-control'), 'no-store')
  const body: unknown = await response.json()
  t.match(body, { payment, charged: 'yes', network: 'eip155:84532', transaction })
  const { evm } = readSandboxFile(server)
  t.notMatch(JSON.stringify(body), evm.payTo, 'an id says nothing about people')
  t.equal((await fetch(`${server.url}/payments/pay_${'A'.repeat(22)}`)).status, 404)
  t.equal((await fetch(`${server.url}/payments/other`)).status, 404)
  t.equal((await fetch(`${server.url}/payments/${payment}`, { method: 'POST' })).status, 405)
})

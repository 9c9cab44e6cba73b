import t from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { at, items } from '../../../support/documents.ts'
import { askJson } from '../../../support/http.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'
import { runProgram, startServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-figures-'))
t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
const start = () =>
  startServer({
    dataDir,
    env: {
      HOST: '127.0.0.1',
      PAY_TO: addressOf(randomKey()),
      SETTLER_PRIVATE_KEY: randomKey(),
      // Nobody listens there, and nobody is asked.
      RPC_URL_8453: 'http://127.0.0.1:9',
    },
  })

async function written(): Promise<unknown> {
  const { stdout } = await runProgram(['stats', '--json', '--data-dir', dataDir])
  return JSON.parse(stdout)
}

t.test('keeps the figures of all but the last seconds after a power cut', async (t) => {
  const server = await start()
  for (const _ of [1, 2, 3]) t.equal((await fetch(`${server.url}/paid/ping`)).status, 402)
  t.equal((await fetch(`${server.url}/sample/ping`)).status, 200)
  await until('the figures are written', async () => /"unpaid":3/.test(JSON.stringify(await written())))
  t.match(await written(), [
    { name: 'free /sample/ping', answers: 1 },
    { name: 'sold ping', unpaid: 3 },
  ])
  await server.kill()
  const next = await start()
  t.teardown(() => next.stop())
  const routes = items(at(await askJson(`${next.url}/status.json`), 'routes'))
  t.match(
    routes.find((route) => at(route, 'path') === '/sample/ping'),
    { success_rate: 1, last_success: /Z$/ },
  )
  t.match(await written(), [
    { name: 'free /sample/ping', answers: 1 },
    { name: 'sold ping', unpaid: 3 },
  ])
})

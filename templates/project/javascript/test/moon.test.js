import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestServer } from 'ratecard/testing'
import { handlers } from '../handlers/index.js'

test('sells the phase of the moon for 0.002 USD', async (t) => {
  const server = await startTestServer({ catalog: 'catalog.yaml', handlers })
  t.after(() => server.close())
  const response = await server.fetch('/paid/moon/2026-12-24')
  assert.equal(response.status, 200)
  assert.match(await response.text(), /full moon/)
  assert.equal(await server.received(), 2_000n)
})

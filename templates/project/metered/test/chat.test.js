import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestServer } from 'ratecard/testing'
import { handlers } from '../handlers/index.js'

/** @param {object} body */
function asking(body) {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

test('charges what an answer has used, whole and as events', async (t) => {
  const server = await startTestServer({ catalog: 'catalog.yaml', handlers })
  t.after(() => server.close())
  const prompt = { prompt: 'What is a rate card?', max_tokens: 4 }
  const whole = await server.fetch('/paid/chat', asking(prompt))
  assert.equal(whole.status, 200)
  assert.match(await whole.text(), /"completion_tokens":4/)
  // 0.0002 USD, 5 tokens at 0.0005 and 4 at 0.0015 per 1,000: 0.0002085 USD, rounded up.
  assert.equal(await server.received(), 209n)
  const events = await server.fetch('/paid/chat/events', asking(prompt))
  assert.match(await events.text(), /data: \{"usage":/)
  assert.equal(await server.received(), 418n)
})

import t from 'tap'
import { ping } from '../../../../src/service/handlers/ping.ts'
import { enveloped, fixedContext, publishedExample } from '../../../support/handler-context.ts'
import { checkedAnswer } from '../../../support/service/answer-shape.ts'

const shown = {
  protocol: 'x402',
  network: 'eip155:8453',
  payer: '0x857b06519E91e3A54538791bDbb0E22373e36b66',
}
const payment = { id: 'pay_1', account: 'key', ...shown } as const

t.test('echoes the nonce and names the payer, as in the published example', async (t) => {
  const { body } = checkedAnswer('ping', await ping.run({ nonce: 'abc' }, fixedContext({ payment })))
  t.strictSame(body, {
    ok: true,
    pong: true,
    nonce: 'abc',
    server_time: '2026-11-20T20:00:00.000Z',
    payment: shown,
  })
  t.strictSame(body, publishedExample('ping'))
})

t.test('answers null and leaves payment out without a nonce and a payment', async (t) => {
  const { body } = enveloped(await ping.run({}, fixedContext()))
  t.strictSame(body, { ok: true, pong: true, nonce: null, server_time: '2026-11-20T20:00:00.000Z' })
})

t.test('shows neither payer nor echo in the free sample', async (t) => {
  const { body } = checkedAnswer('ping', await ping.run({ nonce: 'abc' }, fixedContext({ payment })))
  t.strictSame(ping.preview(body), { ok: true, pong: true, server_time: '2026-11-20T20:00:00.000Z' })
})

import t from 'tap'
import { readWebhookSecret, signatureHeaders } from '../../../../src/engine/webhooks/webhook-signature.ts'

t.test('signs as the libraries of Standard Webhooks do', async (t) => {
  // The example in their tests.
  const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const request = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', at: 1_614_265_330_000, body: '{"test": 2432232314}' }
  t.match(signatureHeaders(secret, request), {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

t.test('takes secrets of 24 to 64 bytes, and none of another form', async (t) => {
  for (const bytes of [24, 32, 64]) {
    const text = `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`
    t.equal(readWebhookSecret(text)?.length, bytes)
  }
  const short = `whsec_${Buffer.alloc(23).toString('base64')}`
  const long = `whsec_${Buffer.alloc(65).toString('base64')}`
  for (const text of ['', 'whsec_', short, long, 'x'.repeat(40), Buffer.alloc(32).toString('base64')])
    t.equal(readWebhookSecret(text), undefined, text)
})

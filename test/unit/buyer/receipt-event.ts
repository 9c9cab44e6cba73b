import t from 'tap'
import { withReceiptEvent } from '../../../src/buyer/receipt-event.ts'

const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' }
const RECEIPT = 'event: receipt\ndata: {"payment":"pay_1","x402/payment-response":{"amount":"7"}}\n\n'

function receiptOf(headers: Headers): unknown {
  const said = headers.get('payment-response')
  return said === null ? undefined : JSON.parse(Buffer.from(said, 'base64').toString())
}

t.test('reads the receipt of a stream from its last event', async (t) => {
  const headers = withReceiptEvent(new Headers(EVENTS), `data: {"text":"a"}\n\n${RECEIPT}`)
  t.strictSame(receiptOf(headers), { amount: '7' })
  t.equal(headers.get('content-type'), EVENTS['content-type'])
})

t.test('keeps the receipt of the headers', async (t) => {
  const headers = new Headers({ ...EVENTS, 'payment-response': 'e30=' })
  t.strictSame(receiptOf(withReceiptEvent(headers, RECEIPT)), {})
})

t.test('takes no other event, and no other text, for a receipt', async (t) => {
  for (const text of [`${RECEIPT}data: {}\n\n`, `data: x${RECEIPT}`, 'event: receipt\ndata: nothing\n\n', ''])
    t.equal(receiptOf(withReceiptEvent(new Headers(EVENTS), text)), undefined, text)
  const plain = new Headers({ 'content-type': 'text/plain' })
  t.equal(receiptOf(withReceiptEvent(plain, RECEIPT)), undefined)
})

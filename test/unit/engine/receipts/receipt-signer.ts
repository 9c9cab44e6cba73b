import t from 'tap'
import { openReceiptSigner } from '../../../../src/engine/receipts/receipt-signer.ts'
import { purchaseOf, receiptOf } from '../../../support/ledger-fixture.ts'
import { newRecord } from '../../../../src/engine/ledger/payment-lifecycle.ts'

const [FIRST, SECOND] = [`0x${'1'.repeat(64)}`, `0x${'2'.repeat(64)}`] as const

t.test('publishes every key, and signs with the first', async (t) => {
  const signer = openReceiptSigner([FIRST, SECOND], 'https://api.example.com')
  const older = openReceiptSigner([SECOND], 'https://api.example.com')
  const idsOf = (document: unknown): unknown => Object(document)['assertionMethod']
  t.match(idsOf(signer?.didDocument), [/^did:web:api\.example\.com#/, idsOf(older?.didDocument)].flat())
})

t.test('names a service below a path as the method did:web does', async (t) => {
  const signer = openReceiptSigner([FIRST], 'http://localhost:4021/shop/api')
  t.equal(signer?.didDocument['id'], 'did:web:localhost%3A4021:shop:api')
})

t.test('signs nothing without a key, an answer, or the address of the call', async (t) => {
  t.equal(openReceiptSigner([], 'https://api.example.com'), undefined)
  const signer = openReceiptSigner([FIRST], 'https://api.example.com')
  const purchase = purchaseOf({ resource: 'https://api.example.com/a' })
  const receipt = receiptOf(purchase)
  const record = { ...newRecord(purchase, 'me', 1, 1), receipt, settledAt: 1_764_000_000_500 }
  t.equal(signer?.sign(record, receipt), undefined)
  const answered = { ...record, answerDigest: 'digest' }
  t.match(signer?.sign(answered, receipt), { x402: /^eyJ/, ratecard: /^eyJ/ })
  t.strictSame(signer?.sign(answered, receipt), signer?.sign(answered, receipt), 'always the same')
  t.equal(signer?.sign({ ...answered, resource: undefined }, receipt), undefined)
})

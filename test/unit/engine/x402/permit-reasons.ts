import t from 'tap'
import { ERRORS } from '../../../../src/engine/base/errors.ts'
import { reasonsFor, verifyRefusal } from '../../../../src/engine/x402/upto-evm/permit-reasons.ts'
import { BY_PERMIT_OF_OTHERS } from '../../../../src/engine/chains/evm/transfer-proof.ts'

const NOBODY = '0x0000000000000000000000000000000000000000'

const REASONS = [
  'permit2_insufficient_balance',
  'permit2_allowance_required',
  'permit2_2612_amount_mismatch',
  'invalid_permit2_signature',
  'permit2_deadline_expired',
  'permit2_invalid_nonce',
  'permit2_simulation_failed',
  'nothing like this',
  '',
  'constructor',
  '__proto__',
]

t.test('explains every reason to the buyer, always with 402', async (t) => {
  for (const reason of [...REASONS, undefined]) {
    const code = verifyRefusal(reason)
    t.ok(code !== undefined && ERRORS[code].status === 402, `${reason}: ${code}`)
  }
})

t.test('blames no buyer for what the facilitator does not serve', async (t) => {
  for (const reason of ['unsupported_scheme', 'upto_facilitator_mismatch', 'permit2_proxy_not_deployed'])
    t.equal(verifyRefusal(reason), undefined)
})

t.test('believes no refusal that a permit that was carried out could have caused', async (t) => {
  const { ofSettle } = reasonsFor(undefined, 100n)
  for (const reason of [
    'permit2_invalid_nonce',
    'permit2_deadline_expired',
    'permit2_simulation_failed',
    'permit2_insufficient_balance',
    'permit2_allowance_required',
    'nothing like this',
    undefined,
  ])
    t.equal(ofSettle(reason), undefined, String(reason))
  t.equal(ofSettle('invalid_permit2_signature'), 'invalid_permit2_signature')
  t.equal(ofSettle('unsupported_scheme'), 'chain_unavailable')
})

t.test('takes an amount that a facilitator states, and never more than was signed', async (t) => {
  const { movedIn } = reasonsFor(undefined, 100n)
  const signed = { token: NOBODY, from: NOBODY, to: NOBODY, nonce: '0x' } as const
  const expected = { ...signed, value: 40n, proof: BY_PERMIT_OF_OTHERS }
  const stated = { success: true, transaction: '0x', errorReason: undefined, listing: undefined }
  t.equal(movedIn(expected, stated), 40n)
  t.equal(movedIn(expected, { ...stated, amount: 70n }), 70n)
  t.equal(movedIn(expected, { ...stated, amount: 101n }), 100n)
})

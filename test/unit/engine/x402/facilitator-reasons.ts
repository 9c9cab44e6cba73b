import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import t from 'tap'
import { ERRORS } from '../../../../src/engine/base/errors.ts'
import { settleRefusal, verifyRefusal } from '../../../../src/engine/x402/exact-evm/facilitator-settler.ts'

/** Error names in the program of the SDK’s facilitator, as it is installed. */
function sdkReasons(): string[] {
  const entry = createRequire(import.meta.url).resolve('@x402/evm/exact/facilitator')
  const found = new Set<string>()
  const visit = (file: string): void => {
    const text = readFileSync(file, 'utf8')
    for (const [, name = ''] of text.matchAll(/\bErr\w+ = "([a-z0-9_]+)"/g)) found.add(name)
    for (const [, chunk = ''] of text.matchAll(/from "(\.[^"]+)"|require\("(\.[^"]+)"\)/g))
      if (chunk !== '' && !seen.has(chunk)) {
        seen.add(chunk)
        visit(join(dirname(file), chunk))
      }
  }
  const seen = new Set<string>()
  visit(entry)
  return [...found]
}

t.test('explains every reason to the buyer, always with 402', async (t) => {
  for (const reason of [
    ...sdkReasons(),
    'insufficient_funds',
    'nothing like this',
    '',
    'constructor',
    '__proto__',
  ]) {
    const code = verifyRefusal(reason)
    if (code !== undefined) t.equal(ERRORS[code].status, 402, `${reason}: ${code}`)
  }
  t.equal(verifyRefusal(undefined), 'invalid_exact_evm_transaction_simulation_failed')
})

t.test('maps the three dialects of one reason to one code', async (t) => {
  const dialects: Readonly<Record<string, readonly string[]>> = {
    invalid_exact_evm_insufficient_balance: ['insufficient_funds', 'invalid_exact_evm_insufficient_balance'],
    invalid_exact_evm_signature: [
      'invalid_exact_evm_payload_signature',
      'invalid_exact_evm_signature',
      'invalid_exact_evm_payload_signature_address',
    ],
    invalid_exact_evm_recipient_mismatch: [
      'invalid_exact_evm_payload_recipient_mismatch',
      'invalid_exact_evm_recipient_mismatch',
    ],
    invalid_exact_evm_payload_authorization_value_mismatch: [
      'invalid_exact_evm_payload_authorization_value_mismatch',
      'invalid_exact_evm_payload_authorization_value',
      'invalid_exact_evm_payload_authorization_value_too_low',
    ],
  }
  for (const [code, reasons] of Object.entries(dialects)) {
    for (const reason of reasons) {
      t.equal(verifyRefusal(reason), code)
      t.equal(settleRefusal(reason), code)
    }
  }
})

t.test('treats a reason after which money may have moved as unknown', async (t) => {
  for (const reason of [
    'settlement_pending',
    'invalid_exact_evm_nonce_already_used',
    'duplicate_settlement',
    'invalid_exact_evm_transaction_failed',
    'invalid_exact_evm_transfer_event_mismatch',
    'invalid_transaction_state',
    'invalid_exact_evm_payload_authorization_valid_before',
    'unexpected_settle_error',
    'a_reason_of_next_year',
    'constructor',
    undefined,
  ])
    t.equal(settleRefusal(reason), undefined, String(reason))
})

t.test('reports a configuration error when a facilitator serves other payments only', async (t) => {
  for (const reason of ['invalid_network', 'unsupported_scheme', 'invalid_exact_evm_token_name_mismatch']) {
    t.equal(verifyRefusal(reason), undefined, 'another one is asked')
    t.equal(settleRefusal(reason), 'chain_unavailable', 'and the payment stays good')
  }
  t.equal(verifyRefusal('unexpected_verify_error'), undefined)
})

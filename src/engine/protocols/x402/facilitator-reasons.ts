import type { ErrorCode } from '../../errors.ts'

const BALANCE = 'invalid_exact_evm_insufficient_balance'
const SIGNATURE = 'invalid_exact_evm_signature'
const RECIPIENT = 'invalid_exact_evm_recipient_mismatch'
const VALUE = 'invalid_exact_evm_payload_authorization_value_mismatch'
const VALID_BEFORE = 'invalid_exact_evm_payload_authorization_valid_before'
const VALID_AFTER = 'invalid_exact_evm_payload_authorization_valid_after'
const REFUSED = 'invalid_exact_evm_transaction_simulation_failed'
const USED = 'invalid_exact_evm_nonce_already_used'

/**
 * Why a facilitator does not take a payment, in our codes: names of the specification (core §9), of the SDKs and of the
 * Coinbase service, which has enumerations of its own.
 */
const PAYERS_FAULT: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['insufficient_funds', BALANCE],
  ['invalid_exact_evm_insufficient_balance', BALANCE],
  ['invalid_exact_evm_signature', SIGNATURE],
  ['invalid_exact_evm_payload_signature', SIGNATURE],
  ['invalid_exact_evm_payload_signature_address', SIGNATURE],
  ['invalid_exact_evm_payload_authorization_typed_data_message', SIGNATURE],
  ['invalid_exact_evm_payload_undeployed_smart_wallet', SIGNATURE],
  ['invalid_exact_evm_failed_to_parse_signature', SIGNATURE],
  ['eip6492_factory_not_allowed', SIGNATURE],
  ['invalid_exact_evm_recipient_mismatch', RECIPIENT],
  ['invalid_exact_evm_payload_recipient_mismatch', RECIPIENT],
  ['invalid_exact_evm_authorization_value', VALUE],
  ['invalid_exact_evm_payload_authorization_value', VALUE],
  ['invalid_exact_evm_payload_authorization_value_too_low', VALUE],
  ['invalid_exact_evm_payload_authorization_value_mismatch', VALUE],
  ['invalid_exact_evm_payload_authorization_valid_before', VALID_BEFORE],
  ['invalid_exact_evm_payload_authorization_valid_after', VALID_AFTER],
  ['invalid_exact_evm_payload_authorization_from_address_kyt', REFUSED],
  ['invalid_exact_evm_payload_authorization_to_address_kyt', REFUSED],
  ['invalid_exact_evm_transaction_simulation_failed', REFUSED],
])

const NONCE: ReadonlySet<string> = new Set([USED, 'nonce_already_used', 'duplicate_settlement'])

/** The payment is as we have asked for it: this facilitator does not serve such ones, and another one may. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'invalid_network',
  'unsupported_network',
  'invalid_exact_evm_network_mismatch',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_exact_evm_scheme',
  'invalid_x402_version',
  'invalid_payment_requirements',
  'unsupported_payload_type',
  'asset_not_deployed_contract',
  'invalid_exact_evm_missing_eip712_domain',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'invalid_exact_evm_eip3009_not_supported',
])

/** What the buyer is told of a refusal; undefined when it says nothing about the payment and another facilitator may know. */
export function verifyRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return REFUSED
  if (NONCE.has(reason)) return USED
  if (NOT_SERVED.has(reason) || reason === 'unexpected_verify_error') return undefined
  return PAYERS_FAULT.get(reason) ?? REFUSED
}

/**
 * The same of a settlement. Undefined when money may have moved all the same: a used nonce may be used by this very
 * payment, a failed transaction may have come second, and what is not in a table is not known.
 */
export function settleRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return undefined
  return NOT_SERVED.has(reason) ? 'chain_unavailable' : PAYERS_FAULT.get(reason)
}

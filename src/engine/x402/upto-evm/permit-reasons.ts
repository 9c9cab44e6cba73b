import type { ErrorCode } from '../../base/errors.ts'
import type { Reasons } from '../exact-evm/facilitated-transfer.ts'
import type { ChainReader } from '../exact-evm/onchain-status.ts'
import { atMost } from '../requirements.ts'
import { USED } from './permit-revert.ts'

const REFUSED = 'permit2_simulation_failed'

/** Why a facilitator does not take a permit: names of the SDK, most of which are ours. */
const PAYERS_FAULT: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['insufficient_funds', 'permit2_insufficient_balance'],
  ['permit2_insufficient_balance', 'permit2_insufficient_balance'],
  ['permit2_allowance_required', 'permit2_allowance_required'],
  ['permit2_2612_amount_mismatch', 'permit2_allowance_required'],
  ['invalid_eip2612_extension_format', 'permit2_allowance_required'],
  ['eip2612_from_mismatch', 'permit2_allowance_required'],
  ['eip2612_asset_mismatch', 'permit2_allowance_required'],
  ['eip2612_spender_not_permit2', 'permit2_allowance_required'],
  ['eip2612_deadline_expired', 'permit2_deadline_expired'],
  ['permit2_deadline_expired', 'permit2_deadline_expired'],
  ['permit2_not_yet_valid', 'permit2_not_yet_valid'],
  ['permit2_payment_too_early', 'permit2_not_yet_valid'],
  ['invalid_permit2_signature', 'invalid_permit2_signature'],
  ['permit2_invalid_nonce', USED],
  ['duplicate_settlement', USED],
])

/** The payment is as we have asked for it: this facilitator does not serve such ones. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'invalid_network',
  'unsupported_network',
  'invalid_upto_evm_network_mismatch',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_upto_evm_scheme',
  'invalid_x402_version',
  'invalid_payment_requirements',
  'unsupported_payload_type',
  'asset_not_deployed_contract',
  'permit2_proxy_not_deployed',
  'upto_facilitator_mismatch',
  'unexpected_verify_error',
])

/** The refusal as the buyer sees it; undefined when the facilitator cannot serve such payments. */
export function verifyRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return REFUSED
  return NOT_SERVED.has(reason) ? undefined : (PAYERS_FAULT.get(reason) ?? REFUSED)
}

/**
 * Reasons that say that nothing was sent. A facilitator that is asked again after it has settled finds what the payer has
 * left, and says that balance or allowance is short: this is believed only where a node shows that the permit is unused.
 */
export function reasonsFor(reader: ChainReader | undefined, ceiling: bigint): Reasons {
  return {
    ofVerify: verifyRefusal,
    ofSettle: (reason) => {
      if (reason === undefined) return undefined
      if (NOT_SERVED.has(reason)) return 'chain_unavailable'
      const code = PAYERS_FAULT.get(reason)
      return code !== undefined && isCertain(code, reader) ? code : undefined
    },
    used: USED,
    movedIn: ({ value }, { amount }) => (amount === undefined ? value : atMost(ceiling, amount)),
  }
}

function isCertain(code: ErrorCode, reader: ChainReader | undefined): boolean {
  const late: readonly ErrorCode[] = [USED, 'permit2_deadline_expired']
  const left: readonly ErrorCode[] = ['permit2_insufficient_balance', 'permit2_allowance_required']
  return !late.includes(code) && (reader !== undefined || !left.includes(code))
}

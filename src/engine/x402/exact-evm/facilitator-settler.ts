import type { ErrorCode, Refusal } from '../../base/errors.ts'
import { balanceOf, isUsed } from '../../chains/evm/eip3009/token-state.ts'
import type { Facilitator } from '../facilitators/facilitator-client.ts'
import { askToVerify, NO_FACILITATOR } from '../facilitators/ask-facilitators.ts'
import { verifyErc1271 } from './contract-wallet.ts'
import {
  resolveByFacilitator,
  settleByFacilitator,
  type FacilitatedTransfer,
  type FacilitatorContext,
  type Reasons,
} from './facilitated-transfer.ts'
import type { ChainReader } from './onchain-status.ts'
import type { SettlementRequest } from './settlement-request.ts'
import type { Settler } from './settler.ts'
import { simulate } from './simulation.ts'

/** How long a node may take for a simulation. */
const SIMULATION_MS = 5_000

/**
 * Has payments verified and settled by facilitators: the one that has verified a payment settles it, and another one is asked
 * only while the first has seen nothing of the settlement.
 */
export function createFacilitatorSettler(context: FacilitatorContext): Settler {
  const { facilitators, reader } = context
  const verifiers = new WeakMap<SettlementRequest, Facilitator>()
  const verifyFirst = async (request: SettlementRequest): Promise<Refusal | undefined> => {
    const verified = await askToVerify(facilitators, request, verifyRefusal)
    if (verified.kind === 'refused') return verified.refusal
    verifiers.set(request, verified.by)
    return undefined
  }
  return {
    simulate: verifyFirst,
    release: () => undefined,
    verifyContract: async (request, digest) => {
      const { authorization, signature } = request.payload.payload
      if (reader !== undefined) return verifyErc1271(reader.chain, authorization.from, digest, signature)
      const refusal = await verifyFirst(request)
      // A used payment, or one that cannot be executed now, does not prove who has signed it.
      return refusal === undefined || refusal.code === 'invalid_exact_evm_signature'
        ? refusal
        : NO_FACILITATOR
    },
    settle: async (request, journal) => {
      const by = verifiers.get(request)
      const verified =
        by === undefined
          ? await askToVerify(facilitators, request, verifyRefusal)
          : { kind: 'verified' as const, by }
      return settleByFacilitator(context, verified, transferOf(request), journal)
    },
    resolve: (expected, dispatch, end, since) =>
      resolveByFacilitator(context, expected, { dispatch, end, since }, REASONS),
  }
}

function transferOf(request: SettlementRequest): FacilitatedTransfer {
  const { expected, payload } = request
  return {
    request,
    expected,
    validBefore: Number(payload.payload.authorization.validBefore) * 1_000,
    reasons: REASONS,
    isRefusedOnChain: (reader) => isRefusedOnChain(reader, request),
  }
}

/** Use and balance are read at one block: several nodes may be behind one address. */
async function isRefusedOnChain(
  { chain }: ChainReader,
  { expected, payload: { payload }, signedBy }: SettlementRequest,
): Promise<boolean> {
  const { token, from, value } = expected
  const head = await chain.block('latest')
  if (head.kind !== 'result') return false
  const { number } = head.result
  const [used, balance] = await Promise.all([
    isUsed(chain, expected, number),
    balanceOf({ chain, token }, from, number),
  ])
  if (used !== false || balance === undefined) return false
  if (balance < value) return true
  // The token looks at the signature after it has found the authorization unused.
  const found = await simulate({ chain, token }, { ...payload, signedBy }, undefined, SIMULATION_MS)
  return found?.code === SIGNATURE
}

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

/** The refusal as the buyer sees it; undefined when another facilitator may accept the payment. */
export function verifyRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return REFUSED
  if (NONCE.has(reason)) return USED
  if (NOT_SERVED.has(reason) || reason === 'unexpected_verify_error') return undefined
  return PAYERS_FAULT.get(reason) ?? REFUSED
}

/**
 * The same of a settlement. Undefined when money may have moved anyway: a used nonce may be used by this very payment, one
 * that has expired may have been used before, a failed transaction may have come second, and what is not in a table is
 * not known. The other reasons are given before anything is sent, and a facilitator that looks again after it has settled
 * finds the nonce used.
 */
export function settleRefusal(reason: string | undefined): ErrorCode | undefined {
  if (reason === undefined) return undefined
  if (NOT_SERVED.has(reason)) return 'chain_unavailable'
  const code = PAYERS_FAULT.get(reason)
  return code === VALID_BEFORE ? undefined : code
}

/** The token moves what was signed, whatever a facilitator states. */
const REASONS: Reasons = {
  ofVerify: verifyRefusal,
  ofSettle: settleRefusal,
  used: USED,
  movedIn: ({ value }) => value,
}

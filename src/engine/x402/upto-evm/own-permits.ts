import { sameAddress } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import type { Network } from '../../base/networks.ts'
import { permitDigest, type SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { findSettleCall, settleCall } from '../../chains/evm/permit2/settle-call.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { BY_PERMIT } from '../../chains/evm/transfer-proof.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../../payment/settlement.ts'
import { verifyErc1271 } from '../exact-evm/contract-wallet.ts'
import type { OwnSettlement } from '../exact-evm/exact.ts'
import { findTransfer } from '../exact-evm/onchain-status.ts'
import { resendOwn, resume } from '../exact-evm/own-settler.ts'
import { expectedIn } from './permit-order.ts'
import type { PermitSettlement } from './permit-settlement.ts'
import { preflightPermit, releasePermit, settlePermit } from './permit-settler.ts'

/**
 * Accounts of ours carry permits out: the one that a buyer has named. One of another process is handed the permit when the
 * work is done.
 */
export function ownPermits(network: Network, own: OwnSettlement): PermitSettlement {
  const isForAnother = ({ dispatch, validBefore }: PaymentRecord): boolean =>
    dispatch?.kind === 'handed over' && !own.shared.isOwn(dispatch.signer) && own.now() < validBefore
  return {
    offered: own.accounts[0],
    approvals: 'sent along',
    mayName: () => true,
    verifyContract: async ({ signed: { permit, signature } }, digest) =>
      verifyErc1271((await own.context()).chain, permit.from, digest, signature),
    simulate: async ({ signed }) => {
      if (!(await own.shared.has(signed.permit.facilitator))) return { kind: 'refused', refusal: NOBODY }
      const context = await own.context()
      const refusal = await preflightPermit(context, signed)
      return refusal === undefined
        ? { kind: 'ready', release: () => releasePermit(context, signed) }
        : { kind: 'refused', refusal }
    },
    settle: async ({ signed }, amount, journal) => {
      const { facilitator } = signed.permit
      if (own.shared.isOwn(facilitator)) return settlePermit(await own.context(), signed, amount, journal)
      if (!(await own.shared.has(facilitator))) return { kind: 'failed', refusal: GONE }
      await journal.record({ kind: 'handed over', signer: facilitator, raw: settleCall(signed, amount) })
      return HANDED_OVER
    },
    resolve: async (record) => {
      const expected = expectedIn(record, network, BY_PERMIT)
      if (expected === undefined) return NOT_OURS
      if (isForAnother(record)) return HANDED_OVER
      const { dispatch, failedIn, createdAt, validBefore } = record
      // Nothing was sent for it so far.
      if (dispatch?.kind === 'handed over') return SETTLEMENT_FAILED
      const context = await own.context()
      // When nothing was sent for it, a permit that is unused now has failed, whatever its deadline.
      const end = dispatch === undefined && failedIn === undefined ? 0 : validBefore
      return dispatch?.kind === 'own'
        ? resume(context, expected, dispatch, end, createdAt)
        : findTransfer(context, expected, end, createdAt)
    },
    resend: async ({ dispatch }) => resendOwn(await own.context(), dispatch),
    isForAnother,
    leave: () => own.shared.leave(),
    background: (payableMs) => own.shared.name(payableMs),
    resettle: async ({ dispatch, amount }, journal) => {
      const raw = dispatch?.kind === 'own' || dispatch?.kind === 'handed over' ? dispatch.raw : undefined
      const call = raw === undefined ? undefined : findSettleCall(raw)
      if (call === undefined) return SETTLEMENT_FAILED
      const signed = { ...call.signed, signedBy: signerKind(network, call.signed) }
      return settlePermit(await own.context(), signed, BigInt(amount), journal)
    },
  }
}

function signerKind(network: Network, { permit, signature }: SignedPermit): SignedPermit['signedBy'] {
  const split = splitSignature(signature)
  const signer = split === undefined ? undefined : recoverSigner(permitDigest(network, permit), split)
  return signer !== undefined && sameAddress(signer, permit.from) ? 'key' : 'contract'
}

const HANDED_OVER: Settlement = {
  kind: 'unknown',
  detail: 'the process whose account the payment names settles it',
}

const NOBODY: Refusal = {
  code: 'upto_facilitator_mismatch',
  detail: 'witness.facilitator is not an account that settles here',
}

const GONE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the process whose account the payment names is not running; nothing was charged',
}

const NOT_OURS: Settlement = { kind: 'unknown', detail: 'this is no payment of scheme upto' }

import { sameAddress } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import { permitDigest, type SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { findSettleCall } from '../../chains/evm/permit2/settle-call.ts'
import { recoverSigner, splitSignature } from '../../chains/evm/signature.ts'
import { BY_PERMIT } from '../../chains/evm/transfer-proof.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../../payment/settlement.ts'
import { verifyErc1271 } from '../exact-evm/contract-wallet.ts'
import type { OwnSettlement } from '../exact-evm/exact.ts'
import { findTransfer } from '../exact-evm/onchain-status.ts'
import { resendOwn, resume } from '../exact-evm/own-settler.ts'
import { expectedIn } from './permit-order.ts'
import type { PermitSettlement } from './permit-settlement.ts'
import { preflightPermit, releasePermit, settlePermit } from './permit-settler.ts'

/** Accounts of this process carry permits out: the one that a buyer has named. */
export function ownPermits(network: Network, own: OwnSettlement): PermitSettlement {
  return {
    offered: own.accounts[0],
    approvals: 'sent along',
    accounts: () => own.accounts,
    verifyContract: async ({ signed: { permit, signature } }, digest) =>
      verifyErc1271((await own.context()).chain, permit.from, digest, signature),
    simulate: async ({ signed }) => {
      const context = await own.context()
      const refusal = await preflightPermit(context, signed)
      return refusal === undefined
        ? { kind: 'ready', release: () => releasePermit(context, signed) }
        : { kind: 'refused', refusal }
    },
    settle: async ({ signed }, amount, journal) => settlePermit(await own.context(), signed, amount, journal),
    resolve: async (record) => {
      const expected = expectedIn(record, network, BY_PERMIT)
      if (expected === undefined) return NOT_OURS
      const { dispatch, failedIn, createdAt, validBefore } = record
      const context = await own.context()
      // When nothing was sent for it, a permit that is unused now has failed, whatever its deadline.
      const end = dispatch === undefined && failedIn === undefined ? 0 : validBefore
      return dispatch?.kind === 'own'
        ? resume(context, expected, dispatch, end, createdAt)
        : findTransfer(context, expected, end, createdAt)
    },
    resend: async ({ dispatch }) => resendOwn(await own.context(), dispatch),
    resettle: async ({ dispatch, amount }, journal) => {
      const raw = dispatch?.kind === 'own' ? dispatch.raw : undefined
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

const NOT_OURS: Settlement = { kind: 'unknown', detail: 'this is no payment of scheme upto' }

import { openSvmAccount } from '../../engine/base/svm-signature.ts'
import type { RefundKeys } from '../../engine/refunds/refund.ts'
import type { Env } from '../../env.ts'
import { EnvError } from '../../env/env-error.ts'

/** The accounts of this environment that refunds are sent from. Throws `EnvError`. */
export function refundKeysOf({
  refundKey,
  svmRefundKey,
}: Pick<Env, 'refundKey' | 'svmRefundKey'>): RefundKeys {
  const svm = svmRefundKey === undefined ? undefined : openSvmAccount(svmRefundKey)
  if (svmRefundKey !== undefined && svm === undefined)
    throw new EnvError([
      'SOLANA_REFUND_PRIVATE_KEY must be a key pair of Solana: 64 bytes in base58, or as a JSON array',
    ])
  return { evm: refundKey, svm }
}

import { isSvmAddress } from '../../engine/base/base58.ts'
import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { findSvmNetwork, type SvmNetwork } from '../../engine/base/networks.ts'

/** An offer of scheme `exact` on Solana, every member of which is understood. */
export interface SvmTerms {
  readonly kind: 'svm'
  readonly scheme: 'exact'
  readonly network: SvmNetwork
  /** Atomic units. */
  readonly amount: bigint
  /** The owner of the token account that is paid. */
  readonly payTo: string
  /** Pays the network’s fee, and signs after the buyer. */
  readonly feePayer: string
  /** What the seller wants to find in the transaction; a random text otherwise. */
  readonly memo: string | undefined
  /** The hash of a recent block, as the seller’s node names it. */
  readonly recentBlockhash: string | undefined
  /** The entry, echoed unchanged. */
  readonly accepted: JsonObject
}

/** Scheme `exact` on Solana. */
const LONGEST_MEMO = 256
const LARGEST_AMOUNT = 2n ** 64n - 1n

/** Undefined for an entry that cannot be signed here. */
export function readSvmTerms(accepted: JsonObject): SvmTerms | undefined {
  const { scheme, network: id, amount, asset, payTo, extra } = accepted
  const network = typeof id === 'string' ? findSvmNetwork(id) : undefined
  if (scheme !== 'exact' || network === undefined || !isJsonObject(extra)) return undefined
  if (typeof amount !== 'string' || !/^[1-9]\d{0,19}$/.test(amount)) return undefined
  if (BigInt(amount) > LARGEST_AMOUNT) return undefined
  // A token we do not know could be worth anything. Letter case is part of the address.
  if (asset !== network.token.address) return undefined
  const { feePayer, memo, recentBlockhash } = extra
  if (typeof payTo !== 'string' || !isSvmAddress(payTo)) return undefined
  if (typeof feePayer !== 'string' || !isSvmAddress(feePayer)) return undefined
  if (memo !== undefined && (typeof memo !== 'string' || Buffer.byteLength(memo) > LONGEST_MEMO))
    return undefined
  return {
    kind: 'svm',
    scheme,
    network,
    amount: BigInt(amount),
    payTo,
    feePayer,
    memo: memo === '' ? undefined : memo,
    recentBlockhash:
      typeof recentBlockhash === 'string' && isSvmAddress(recentBlockhash) ? recentBlockhash : undefined,
    accepted,
  }
}

import { toChecksum, type Address } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import type { Authorization } from '../../chains/evm/eip3009/authorization.ts'

/** The signed fields that make an authorization unique on chain: (token, from, nonce). */
export function paymentKey(network: Network, { from, nonce }: Pick<Authorization, 'from' | 'nonce'>): string {
  return ['x402', 'exact', network.id, network.token.address, from, nonce.toLowerCase()].join(':')
}

/** Parses a ledger key, for payments without their header. */
export function readPaymentKey(
  key: string,
): { readonly from: Address; readonly nonce: `0x${string}` } | undefined {
  const match = /^x402:exact:.*:(0x[0-9a-fA-F]{40}):(0x[0-9a-f]{64})$/.exec(key)
  if (match === null) return undefined
  const [, from = '', nonce = ''] = match
  return { from: toChecksum(from), nonce: `0x${nonce.slice(2)}` }
}

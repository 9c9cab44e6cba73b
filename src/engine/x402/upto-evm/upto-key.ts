import { toChecksum, type Address } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import { nonceWord, type Permit } from '../../chains/evm/permit2/permit.ts'

/** The signed fields that make a permit unique on chain: (payer, nonce), whatever the token. */
export function uptoKey(network: Network, permit: Pick<Permit, 'from' | 'nonce'>): string {
  return ['x402', 'upto', network.id, permit.from, nonceWord(permit)].join(':')
}

/** Parses a ledger key, for payments without their header. */
export function readUptoKey(
  key: string,
): { readonly from: Address; readonly nonce: `0x${string}` } | undefined {
  const match = /^x402:upto:.*:(0x[0-9a-fA-F]{40}):(0x[0-9a-f]{64})$/.exec(key)
  if (match === null) return undefined
  const [, from = '', nonce = ''] = match
  return { from: toChecksum(from), nonce: `0x${nonce.slice(2)}` }
}

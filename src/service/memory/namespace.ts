import type { PaymentFacts } from 'ratecard/handler'

/**
 * Whose memories a payment opens. An account with a key is the same person on every chain, so its address alone counts; a
 * contract of the same address may belong to someone else on another chain, so the chain counts too (CAIP-10).
 */
export function namespaceOf({ account, network, payer }: PaymentFacts): string {
  return account === 'key' ? namespaceOfKey(payer) : `${network}:${payer.toLowerCase()}`
}

/** The memories of an account with a key, by its address. */
export function namespaceOfKey(address: string): string {
  return `eip155:${address.toLowerCase()}`
}

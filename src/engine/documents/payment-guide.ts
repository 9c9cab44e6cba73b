import { usesTestNetworks, type Catalog } from '../catalog/catalog.ts'
import { findAnyNetwork } from '../base/networks.ts'
import type { Facts } from './registry.ts'
import { usualOffers } from './listed-operations.ts'

const SANDBOX = 'Sandbox: payments are play money on a local chain.'
const TEST_NETWORKS = 'Test network: payments are worthless test money.'

/** The notice on every document when the money is not real; empty when it is. */
export function moneyNotice({ payments }: Catalog, { sandbox }: Facts): string {
  if (sandbox) return SANDBOX
  return usesTestNetworks(payments) ? TEST_NETWORKS : ''
}

/** What follows a name when the money is not real. */
export function nameMark({ payments }: Catalog, { sandbox }: Facts): string {
  if (sandbox) return ' (sandbox)'
  return usesTestNetworks(payments) ? ' (test network)' : ''
}

/** Instructions for a payment, one step per line. */
export function howToPay(catalog: Catalog, facts: Facts): string[] {
  const lines = ['Send the request without a payment: the 402 lists what to pay and costs nothing.']
  if (facts.protocols.includes('x402')) {
    const v1 = catalog.payments.x402?.v1 === true
    lines.push(
      `Its header PAYMENT-REQUIRED is base64 of JSON (x402 version 2${v1 ? '' : '; the body has the same members'}): choose one of "accepts"${offeredNetworks(catalog, facts)}.`,
      'Sign it as an EIP-3009 TransferWithAuthorization, exactly as offered. You need no gas.',
      `Send the same request with PAYMENT-SIGNATURE: base64 of {"x402Version": 2, "accepted", "payload": {"signature", "authorization"}}, with "resource" and "extensions" of the 402. The receipt is in PAYMENT-RESPONSE. x402 client libraries do all this${v1 ? '; those of version 1 too, by X-PAYMENT and X-PAYMENT-RESPONSE, where the body says "x402Version": 1' : ''}.`,
    )
  }
  if (facts.protocols.includes('mpp')) {
    lines.push(
      'Or pay by MPP: answer WWW-Authenticate: Payment with Authorization: Payment; the receipt is in Payment-Receipt.',
    )
  }
  lines.push('Answer lost, or 503? Send the same payment again, not a new one: it is charged once at most.')
  return lines
}

/** The networks of the present offers. */
export function offeredNetworks(catalog: Catalog, facts: Facts): string {
  const ids = usualOffers(catalog, facts).flatMap(({ network }) =>
    typeof network === 'string' ? [network] : [],
  )
  const named = [...new Set(ids)].map((id) => `${findAnyNetwork(id)?.title ?? 'chain'} (${id})`)
  return named.length === 0 ? '' : `, for ${named.join(', ')}`
}

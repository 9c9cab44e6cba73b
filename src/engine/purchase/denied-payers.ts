import type { Catalog } from '../catalog/catalog.ts'
import type { Protocol } from '../payment/protocol.ts'

/** The payers that the catalog denies, as the protocols spell them; one address may be a payer of several. */
export function deniedPayers(
  { payments: { denied } }: Pick<Catalog, 'payments'>,
  protocols: readonly Pick<Protocol, 'payerKeys'>[],
): ReadonlySet<string> {
  return new Set(denied.flatMap((text) => protocols.flatMap((protocol) => protocol.payerKeys(text))))
}

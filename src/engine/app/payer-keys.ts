import { evmPayerKey } from '../chains/evm/payer-key.ts'

/** How each kind of network spells a payer: of x402 `exact` on EVM, and of MPP. */
const SPELLINGS: readonly ((text: string) => string | undefined)[] = [evmPayerKey]

/** The payers that an operator may mean by an address, as records have them; none when it is not an address. */
export function payerKeys(text: string): readonly string[] {
  return SPELLINGS.flatMap((payerKey) => payerKey(text) ?? [])
}

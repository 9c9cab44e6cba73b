import { evmPayerKey } from '../chains/evm/payer-key.ts'
import { svmPayerKey } from '../chains/svm/payer-key.ts'

/** How each kind of network spells a payer: EVM and MPP, and Solana. */
const SPELLINGS: readonly ((text: string) => string | undefined)[] = [evmPayerKey, svmPayerKey]

/** The payers that an operator may mean by an address, as records have them; none when it is not an address. */
export function payerKeys(text: string): readonly string[] {
  return SPELLINGS.flatMap((payerKey) => payerKey(text) ?? [])
}

import { isAddress, toChecksum } from '../../base/address.ts'

/** The account that a text names, by its EIP-55 spelling; undefined when the text is no EVM address. */
export function evmPayerKey(text: string): string | undefined {
  return isAddress(text) ? toChecksum(text) : undefined
}

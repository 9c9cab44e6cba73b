import { isSvmAddress } from '../../base/base58.ts'

/** The account that a text names: as it is written, since its letter case is part of it. Undefined: no such address. */
export function svmPayerKey(text: string): string | undefined {
  return isSvmAddress(text) ? text : undefined
}

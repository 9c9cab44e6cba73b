import type { SvmNetwork } from '../../base/networks.ts'
import type { SvmPayload } from './svm-payload.ts'

/** The key of a payment: its payer, and the digest of what was signed. */
export function svmKey(network: SvmNetwork, { transfer, digest }: SvmPayload): string {
  return ['x402', 'exact', network.id, network.token.address, transfer.payer, `0x${digest}`].join(':')
}

/** The digest in a key. */
export function digestInKey(key: string): string | undefined {
  return /:0x([0-9a-f]{64})$/.exec(key)?.[1]
}

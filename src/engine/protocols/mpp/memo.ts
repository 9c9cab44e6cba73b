import { keccak256, stringToHex } from 'viem/utils'

/**
 * The memo that ties a transfer to its challenge, 32 bytes: tag of MPP (4), version (1), realm (10), client (10, free),
 * challenge (7). Each is the beginning of a keccak256.
 */
export function isBoundMemo(memo: string, realm: string, challengeId: string): boolean {
  const form = new RegExp(
    `^0x${beginning('mpp', 4)}01${beginning(realm, 10)}[0-9a-f]{20}${beginning(challengeId, 7)}$`,
    'i',
  )
  return form.test(memo)
}

function beginning(text: string, bytes: number): string {
  return keccak256(stringToHex(text)).slice(2, 2 + 2 * bytes)
}

import { keccak256 } from 'js-sha3'

/**
 * Whether a memo of 32 bytes ties a transfer to its challenge: tag of MPP (4), version (1), realm (10), client (10,
 * free), challenge (7). Each is the beginning of a keccak256. `memo`: hexadecimal digits after 0x.
 */
export function isBoundMemo(memo: string, realm: string, challengeId: string): boolean {
  const start = `0x${beginning('mpp', 4)}01${beginning(realm, 10)}`
  const digits = memo.toLowerCase()
  return digits.length === 66 && digits.startsWith(start) && digits.endsWith(beginning(challengeId, 7))
}

function beginning(text: string, bytes: number): string {
  return keccak256(text).slice(0, 2 * bytes)
}

import { createHash } from 'node:crypto'
import { decodeBase58, encodeBase58 } from './base58.ts'
import { isOnCurve } from './curve25519.ts'
import { ASSOCIATED_TOKEN_PROGRAM, TOKEN_PROGRAM } from './svm-programs.ts'

const MARKER = 'ProgramDerivedAddress'

/**
 * The associated token account of an owner: where its tokens of a mint are, by convention. It is derived from the two,
 * and lies off the curve, so that no key can sign for it. Undefined when one of the texts is no address.
 */
export function tokenAccountOf(owner: string, mint: string): string | undefined {
  const seeds = [owner, TOKEN_PROGRAM, mint, ASSOCIATED_TOKEN_PROGRAM].map((text) => decodeBase58(text, 32))
  if (!seeds.every((seed) => seed !== undefined)) return undefined
  const [ownerKey, tokenProgram, mintKey, program] = seeds
  if (!ownerKey || !tokenProgram || !mintKey || !program) return undefined
  for (let bump = 255; bump >= 0; bump -= 1) {
    const hash = createHash('sha256')
    for (const part of [ownerKey, tokenProgram, mintKey, Uint8Array.of(bump), program]) hash.update(part)
    const address = hash.update(MARKER).digest()
    if (!isOnCurve(address)) return encodeBase58(address)
  }
  return undefined
}

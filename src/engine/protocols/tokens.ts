const TOKEN_BYTES = 18
/** Characters of a token in base64url. */
export const TOKEN_LENGTH = 24

/** Asking the system for 18 bytes costs as much as asking for many. */
const TOKENS_AT_ONCE = 64

/** Random tokens, one for each challenge: no two challenges are alike, of whichever process and moment. */
export function createTokens(random: (bytes: number) => Uint8Array): () => string {
  let pool = Buffer.alloc(0)
  let next = 0
  return () => {
    if (next === pool.length) {
      pool = Buffer.from(random(TOKEN_BYTES * TOKENS_AT_ONCE))
      next = 0
    }
    next += TOKEN_BYTES
    return pool.toString('base64url', next - TOKEN_BYTES, next)
  }
}

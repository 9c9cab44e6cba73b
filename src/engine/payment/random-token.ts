const TOKEN_BYTES = 18

/** Characters of a token in base64url. */
export const TOKEN_LENGTH = 24

/** Tokens per request to the system: 18 bytes and their encoding cost as much as many. */
const TOKENS_AT_ONCE = 64

/** Random tokens, one for each challenge: no two challenges are alike, of whichever process and moment. */
export function createTokens(random: (bytes: number) => Uint8Array): () => string {
  let pool = ''
  let next = 0
  return () => {
    if (next === pool.length) {
      pool = Buffer.from(random(TOKEN_BYTES * TOKENS_AT_ONCE)).toString('base64url')
      next = 0
    }
    next += TOKEN_LENGTH
    return pool.slice(next - TOKEN_LENGTH, next)
  }
}

import t from 'tap'
import { createTokens, TOKEN_LENGTH } from '../../../src/engine/protocols/protocol.ts'
import { randomBytes } from '../../support/random.ts'

t.test('no two challenges carry the same token, or one buyer could read the other’s answer', async (t) => {
  const nextToken = createTokens(randomBytes)
  const tokens = Array.from({ length: 1000 }, () => nextToken())
  t.equal(new Set(tokens).size, tokens.length)
  for (const token of tokens) t.match(token, new RegExp(`^[A-Za-z0-9_-]{${TOKEN_LENGTH}}$`))
})

t.test('a token holds 18 bytes of the randomness it was given, none of them used for another', async (t) => {
  let drawn = 0
  const nextToken = createTokens((bytes) => Uint8Array.from({ length: bytes }, () => drawn++ % 256))
  const first = Array.from({ length: 18 }, (_, index) => index)
  t.equal(nextToken(), Buffer.from(first).toString('base64url'))
  t.equal(nextToken(), Buffer.from(first.map((byte) => byte + 18)).toString('base64url'))
})

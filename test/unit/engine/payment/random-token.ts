import t from 'tap'
import { createTokens, TOKEN_LENGTH } from '../../../../src/engine/payment/random-token.ts'
import { encodeAfter } from '../../../../src/engine/x402/base64-prefix.ts'
import { fc } from '../../../support/fast-check.ts'
import { randomBytes } from '../../../support/random.ts'

const { assert, property, string } = fc

t.test('gives every challenge a token of its own, so that only its buyer reads the answer', async (t) => {
  const nextToken = createTokens(randomBytes)
  const tokens = Array.from({ length: 1000 }, () => nextToken())
  t.equal(new Set(tokens).size, tokens.length)
  for (const token of tokens) t.match(token, new RegExp(`^[A-Za-z0-9_-]{${TOKEN_LENGTH}}$`))
})

t.test('uses 18 bytes of the given randomness for a token, each once', async (t) => {
  let drawn = 0
  const nextToken = createTokens((bytes) => Uint8Array.from({ length: bytes }, () => drawn++ % 256))
  const first = Array.from({ length: 18 }, (_, index) => index)
  t.equal(nextToken(), Buffer.from(first).toString('base64url'))
  t.equal(nextToken(), Buffer.from(first.map((byte) => byte + 18)).toString('base64url'))
})

t.test('writes a challenge in readable base64 for any URL, token and language of the catalog', async () => {
  const text = string({ unit: 'binary' })
  const ascii = string({ unit: 'binary-ascii' })
  assert(
    property(text, ascii, ascii, (inner, rest, other) => {
      const beginning = `{"a":${inner}"b":"`
      const encode = encodeAfter(beginning)
      return [rest, other].every(
        (each) => encode(each) === Buffer.from(beginning + each, 'utf8').toString('base64'),
      )
    }),
  )
})

import t from 'tap'
import { frameBase64 } from '../../../../src/engine/protocols/x402/challenge.ts'
import { fc } from '../../../support/fast-check.ts'

const { assert, property, string } = fc

t.test('writes a challenge in readable base64 for any URL, token and language of the catalog', async () => {
  const text = string({ unit: 'binary' })
  assert(
    property(text, text, text, text, (before, inner, after, again) => {
      const standing = `,"a":${inner}"b":`
      const frame = frameBase64(standing)
      const expected = (...parts: string[]) => Buffer.from(parts.join(''), 'utf8').toString('base64')
      return (
        frame(before, after) === expected(before, standing, after) &&
        frame(again, after) === expected(again, standing, after) &&
        frame(before, again) === expected(before, standing, again)
      )
    }),
  )
})

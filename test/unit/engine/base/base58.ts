import { randomBytes } from 'node:crypto'
import { address, getBase58Decoder } from '@solana/kit'
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from '@solana-program/token'
import t from 'tap'
import { decodeBase58, encodeBase58, isSvmAddress } from '../../../../src/engine/base/base58.ts'
import { tokenAccountOf } from '../../../../src/engine/base/token-account.ts'

const MINT = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'

t.test('base58 is that of the Solana packages, zeros in front included', async (t) => {
  for (const zeros of [0, 1, 5, 32])
    for (let time = 0; time < 20; time += 1) {
      const bytes = randomBytes(32).fill(0, 0, zeros)
      const text = getBase58Decoder().decode(bytes)
      t.equal(encodeBase58(bytes), text)
      t.same(decodeBase58(text, 32), Uint8Array.from(bytes))
    }
})

t.test('a text of another length, or with another character, is no address', async (t) => {
  t.ok(isSvmAddress(MINT))
  for (const text of [
    '',
    MINT.slice(4),
    `${MINT}1`,
    `0${MINT.slice(1)}`,
    MINT.replace('E', 'O'),
    'z'.repeat(4_000),
  ])
    t.notOk(isSvmAddress(text), text.slice(0, 50))
})

t.test('a token account is where the token program looks for it', async (t) => {
  for (let time = 0; time < 20; time += 1) {
    const owner = encodeBase58(randomBytes(32))
    const [account] = await findAssociatedTokenPda({
      owner: address(owner),
      mint: address(MINT),
      tokenProgram: TOKEN_PROGRAM_ADDRESS,
    })
    t.equal(tokenAccountOf(owner, MINT), account)
  }
  t.equal(tokenAccountOf('0x00', MINT), undefined)
})

import t from 'tap'
import { hashTypedData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { NETWORKS, type Network } from '../../../../src/engine/base/networks.ts'
import { addressOfKey, recoverSigner, splitSignature } from '../../../../src/engine/chains/evm/signature.ts'
import { authorizationDigest } from '../../../../src/engine/chains/evm/eip3009/digest.ts'
import { TRANSFER_TYPES, type Hex } from '../../../support/payment.ts'
import { fc } from '../../../support/fast-check.ts'
import { randomHex } from '../../../support/random.ts'

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const hexOf = (bytes: number): fc.Arbitrary<Hex> =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((each): Hex => `0x${Buffer.from(each).toString('hex')}`)
const word = (value: bigint): string => value.toString(16).padStart(64, '0')

const message = fc.record({
  from: hexOf(20),
  to: hexOf(20),
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: hexOf(32),
})
type Message = typeof message extends fc.Arbitrary<infer T> ? T : never

function typedData({ chainId, token }: Network, given: Message) {
  const domain = { name: token.name, version: token.version, chainId, verifyingContract: token.address }
  return { domain, types: TRANSFER_TYPES, primaryType: 'TransferWithAuthorization', message: given } as const
}

function digestOf(
  network: Network,
  { from, to, value, validAfter, validBefore, nonce }: Message,
): Uint8Array {
  const [a, b, c] = [value, validAfter, validBefore].map(String)
  return authorizationDigest(network, {
    from,
    to,
    value: a ?? '',
    validAfter: b ?? '',
    validBefore: c ?? '',
    nonce,
  })
}

t.test('verifies what a wallet signs, for every token and any numbers', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...NETWORKS), message, (network, given) => {
      const ours = `0x${Buffer.from(digestOf(network, given)).toString('hex')}`
      return ours === hashTypedData(typedData(network, given))
    }),
    { numRuns: 300 },
  )
  t.pass()
})

t.test('recovers the signer, for many keys', async (t) => {
  for (let round = 0; round < 60; round += 1) {
    const key: Hex = randomHex()
    const account = privateKeyToAccount(key)
    t.equal(addressOfKey(key), account.address)
    const network = NETWORKS[round % NETWORKS.length]
    const [given] = fc.sample(message, 1)
    if (network === undefined || given === undefined) throw new Error('no sample')
    const signature = await account.signTypedData(typedData(network, given))
    const split = splitSignature(signature)
    if (split === undefined) throw new Error('a wallet’s signature is refused')
    t.equal(recoverSigner(digestOf(network, given), split), account.address.toLowerCase())
    const other = recoverSigner(digestOf(network, { ...given, value: given.value ^ 1n }), split)
    t.not(other, account.address.toLowerCase())
  }
})

const DIGEST = new Uint8Array(32).fill(9)
const KEY: Hex = `0x${'11'.repeat(32)}`

t.test('reads every usual spelling of v, and refuses others', async (t) => {
  const { r, s, v } = await signed()
  const body = r.slice(2) + s.slice(2)
  const spelt = (last: number) => splitSignature(`0x${body}${last.toString(16).padStart(2, '0')}`)
  t.equal(spelt(v)?.v, v)
  t.equal(spelt(v - 27)?.v, v, '0 and 1 are 27 and 28')
  for (const last of [2, 3, 4, 26, 29, 30, 35, 36, 37, 128, 255])
    t.equal(spelt(last), undefined, String(last))
})

t.test('refuses the malleable second form of a signature, as the token does (EIP-2)', async (t) => {
  const { r, s, v } = await signed()
  const high = ORDER - BigInt(s)
  t.equal(splitSignature(`0x${r.slice(2)}${word(high)}${(v === 27 ? 28 : 27).toString(16)}`), undefined)
  const half = ORDER / 2n
  t.ok(splitSignature(`0x${r.slice(2)}${word(half)}1b`), 'half the order itself is allowed')
  t.equal(splitSignature(`0x${r.slice(2)}${word(half + 1n)}1b`), undefined)
})

t.test('refuses numbers outside of the curve', async (t) => {
  const { r, s } = await signed()
  const outside = [0n, ORDER, ORDER + 1n, 2n ** 256n - 1n]
  for (const value of outside) {
    for (const v of [27, 28] as const) {
      t.equal(recoverSigner(DIGEST, { r: `0x${word(value)}`, s, v }), undefined, `r ${value}`)
      t.equal(recoverSigner(DIGEST, { r, s: `0x${word(value)}`, v }), undefined, `s ${value}`)
    }
  }
  // No point of the curve has this x.
  t.equal(recoverSigner(DIGEST, { r: `0x${word(5n)}`, s, v: 27 }), undefined)
})

t.test('refuses signatures of another length', async (t) => {
  for (const length of [0, 1, 64, 66, 130]) t.equal(splitSignature(`0x${'11'.repeat(length)}`), undefined)
})

t.test('refuses invalid keys', async (t) => {
  t.equal(addressOfKey(`0x${'00'.repeat(32)}`), undefined)
  t.equal(addressOfKey(`0x${word(ORDER)}`), undefined)
})

t.test('answers any bytes with a signer or a refusal', async (t) => {
  fc.assert(
    fc.property(hexOf(65), hexOf(32), (signature, digest) => {
      const split = splitSignature(signature)
      if (split !== undefined) recoverSigner(Buffer.from(digest.slice(2), 'hex'), split)
    }),
    { numRuns: 1_000 },
  )
  t.pass()
})

async function signed() {
  const signature = await privateKeyToAccount(KEY).sign({ hash: `0x${Buffer.from(DIGEST).toString('hex')}` })
  const split = splitSignature(signature)
  if (split === undefined) throw new Error('no signature')
  return split
}

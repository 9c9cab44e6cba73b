import { randomBytes } from 'node:crypto'
import {
  address,
  appendTransactionMessageInstructions,
  blockhash,
  createKeyPairSignerFromPrivateKeyBytes,
  createTransactionMessage,
  getTransactionEncoder,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import { getTransferCheckedInstruction } from '@solana-program/token'
import t from 'tap'
import { encodeBase58 } from '../../../../../src/engine/base/base58.ts'
import { isSignedBy, openSvmAccount } from '../../../../../src/engine/base/svm-signature.ts'
import { readTransaction, writeTransaction } from '../../../../../src/engine/chains/svm/transaction.ts'

const [feePayer, mint, from, to, hash] = Array.from({ length: 5 }, () => encodeBase58(randomBytes(32)))

async function signedTransaction(version: 'legacy' | 0) {
  const payer = await createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
  const transfer = getTransferCheckedInstruction({
    source: address(from ?? ''),
    mint: address(mint ?? ''),
    destination: address(to ?? ''),
    authority: payer,
    amount: 7n,
    decimals: 6,
  })
  const message = pipe(
    createTransactionMessage({ version }),
    (empty) => setTransactionMessageFeePayer(address(feePayer ?? ''), empty),
    (paid) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: blockhash(hash ?? ''), lastValidBlockHeight: 0n },
        paid,
      ),
    (living) => appendTransactionMessageInstructions([transfer], living),
  )
  const signed = await partiallySignTransactionMessageWithSigners(message)
  return { payer: payer.address, bytes: Buffer.from(getTransactionEncoder().encode(signed)) }
}

for (const version of ['legacy', 0] as const)
  t.test(`a transaction of version ${version} is read as the Solana packages write it`, async (t) => {
    const { payer, bytes } = await signedTransaction(version)
    const read = readTransaction(bytes)
    if (read.kind !== 'transaction') return t.fail(read.detail)
    const { transaction } = read
    t.same(transaction.accounts.slice(0, 2), [feePayer, payer])
    t.equal(transaction.blockhash, hash)
    t.match(transaction.instructions, [{ accounts: [from, mint, to, payer] }])
    t.same(Buffer.from(writeTransaction(transaction)), bytes)
    t.ok(isSignedBy(payer, transaction.signatures[1] ?? new Uint8Array(), transaction.message))
    t.notOk(isSignedBy(feePayer ?? '', transaction.signatures[1] ?? new Uint8Array(), transaction.message))
  })

t.test('a transaction with lookup tables, cut off, or with something behind it is malformed', async (t) => {
  const { bytes } = await signedTransaction(0)
  const malformed = (changed: Uint8Array, detail: RegExp): void => {
    const read = readTransaction(changed)
    t.equal(read.kind, 'malformed')
    if (read.kind === 'malformed') t.match(read.detail, detail)
  }
  malformed(Buffer.concat([bytes.subarray(0, -1), Buffer.from([1])]), /lookup tables/)
  malformed(Buffer.concat([bytes, Buffer.from([0])]), /follows its end/)
  malformed(Buffer.concat([Buffer.from([0x82, 0x00]), bytes.subarray(1)]), /length is not spelt/)
  malformed(new Uint8Array(1_233), /longer than 1232 bytes/)
  for (let length = 0; length < bytes.length; length += 7) malformed(bytes.subarray(0, length), /./)
})

t.test('hostile bytes are read or refused, and never throw', async (t) => {
  const { bytes } = await signedTransaction(0)
  for (let time = 0; time < 2_000; time += 1) {
    const bent = Buffer.from(bytes)
    for (const at of randomBytes(3)) bent[128 + (at % (bent.length - 128))] = randomBytes(1)[0] ?? 0
    readTransaction(bent)
    readTransaction(randomBytes(time % 300))
  }
  t.pass()
})

t.test(
  'a key pair is taken in base58 and as a JSON array, and only if its halves belong together',
  async (t) => {
    const seed = randomBytes(32)
    const signer = await createKeyPairSignerFromPrivateKeyBytes(seed, true)
    const key = Buffer.from(await crypto.subtle.exportKey('raw', signer.keyPair.publicKey))
    const pair = Buffer.concat([seed, key])
    for (const text of [encodeBase58(pair), JSON.stringify([...pair]), ` ${JSON.stringify([...pair])}\n`])
      t.equal(openSvmAccount(text)?.address, signer.address)
    const message = randomBytes(100)
    const signature = openSvmAccount(encodeBase58(pair))?.sign(message) ?? new Uint8Array()
    t.ok(isSignedBy(signer.address, signature, message))
    const torn = Buffer.concat([seed, randomBytes(32)])
    for (const text of [
      '',
      '[]',
      '[1,2]',
      encodeBase58(seed),
      encodeBase58(torn),
      JSON.stringify([...pair, 1]),
    ])
      t.equal(openSvmAccount(text), undefined)
  },
)

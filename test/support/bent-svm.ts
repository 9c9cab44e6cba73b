import { Buffer } from 'node:buffer'
import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  blockhash,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import { getTransferCheckedInstruction } from '@solana-program/token'
import type { SvmChain } from '../../src/sandbox/svm/chain.ts'
import { at } from './documents.ts'
import { svmTokenAccount, type SvmSale } from './svm.ts'

/** What differs in a transaction from what a client should sign. */
export interface Bend {
  readonly amount?: bigint
  readonly mint?: string
  /** Who is paid instead of the seller. */
  readonly payee?: string
  readonly feePayer?: string
  /** Whose tokens move. */
  readonly authority?: KeyPairSigner
  /** Micro-lamports. */
  readonly unitPrice?: bigint
  readonly units?: number
  readonly memos?: readonly string[]
  readonly last?: readonly Instruction[]
  readonly blockhash?: Blockhash
}

const COMPUTE_BUDGET = address('ComputeBudget111111111111111111111111111111')
const MEMO = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')

/** A transaction of the buyer as the official client makes it, but for this; in base64. */
export async function bentTransaction(sale: SvmSale, feePayer: string, bend: Bend = {}): Promise<string> {
  const { chain, buyer, seller, requirements } = sale
  const { authority = buyer, units = 20_000, unitPrice = 1n, memos = [`memo ${Math.random()}`] } = bend
  const transfer = getTransferCheckedInstruction({
    source: address(await svmTokenAccount(authority.address)),
    mint: address(bend.mint ?? requirements.asset),
    destination: address(await svmTokenAccount(bend.payee ?? seller)),
    authority,
    amount: bend.amount ?? BigInt(requirements.amount),
    decimals: 6,
  })
  const latest = await chain.call('getLatestBlockhash', [])
  const lifetime = {
    blockhash: bend.blockhash ?? blockhash(textOf(at(latest, 'value', 'blockhash'))),
    lastValidBlockHeight: 0n,
  }
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayer(address(bend.feePayer ?? feePayer), empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(lifetime, paid),
    (living) =>
      appendTransactionMessageInstructions(
        [
          { programAddress: COMPUTE_BUDGET, data: number(2, units, 4) },
          { programAddress: COMPUTE_BUDGET, data: number(3, unitPrice, 8) },
          transfer,
          ...memos.map((memo) => ({ programAddress: MEMO, data: Buffer.from(memo) })),
          ...(bend.last ?? []),
        ],
        living,
      ),
  )
  return getBase64EncodedWireTransaction(await partiallySignTransactionMessageWithSigners(message))
}

/** An instruction that moves tokens of the buyer again. */
export async function secondTransfer({ buyer, seller, requirements }: SvmSale): Promise<Instruction> {
  return getTransferCheckedInstruction({
    source: address(await svmTokenAccount(buyer.address)),
    mint: address(requirements.asset),
    destination: address(await svmTokenAccount(seller)),
    authority: buyer,
    amount: 1n,
    decimals: 6,
  })
}

/** A memo whose accounts contain the fee payer. */
export function memoWith(account: string): Instruction {
  return {
    programAddress: MEMO,
    accounts: [{ address: address(account), role: AccountRole.READONLY }],
    data: Buffer.from('with an account'),
  }
}

/** An ordinary transaction, whose signer pays the fee. */
export async function sendSvmInstructions(
  chain: SvmChain,
  signer: KeyPairSigner,
  instructions: readonly Instruction[],
): Promise<void> {
  const latest = await chain.call('getLatestBlockhash', [])
  const lifetime = {
    blockhash: blockhash(textOf(at(latest, 'value', 'blockhash'))),
    lastValidBlockHeight: 0n,
  }
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayerSigner(signer, empty),
    (paid) => setTransactionMessageLifetimeUsingBlockhash(lifetime, paid),
    (timed) => appendTransactionMessageInstructions(instructions, timed),
  )
  const signed = await partiallySignTransactionMessageWithSigners(message)
  await chain.call('sendTransaction', [getBase64EncodedWireTransaction(signed), { encoding: 'base64' }])
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('this is no text')
  return value
}

function number(discriminator: number, value: number | bigint, bytes: number): Uint8Array {
  const data = Buffer.alloc(1 + bytes)
  data.writeUInt8(discriminator)
  if (bytes === 8) data.writeBigUInt64LE(BigInt(value), 1)
  else data.writeUInt32LE(Number(value), 1)
  return data
}

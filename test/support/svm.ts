import { randomBytes } from 'node:crypto'
import { address, createKeyPairSignerFromPrivateKeyBytes, type KeyPairSigner } from '@solana/kit'
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from '@solana-program/token'
import type { PaymentRequirements } from '@x402/core/types'
import { ExactSvmScheme as ExactClient, SOLANA_DEVNET_CAIP2, toFacilitatorSvmSigner } from '@x402/svm'
import { ExactSvmScheme as ExactFacilitator } from '@x402/svm/exact/facilitator'
import {
  DEVNET_USDC,
  startSvmChain,
  type SvmChain,
  type SvmChainOptions,
} from '../../src/sandbox/svm/chain.ts'

/** A local Solana chain and the accounts of one sale. */
export interface SvmSale {
  readonly chain: SvmChain
  readonly buyer: KeyPairSigner
  readonly seller: string
  /** Pays the network’s fees. */
  readonly feePayer: KeyPairSigner
  /** What the seller asks for. */
  readonly requirements: PaymentRequirements
}

/** A buyer with one dollar, a seller with a token account, and a fee payer with one SOL. */
export async function startSvmSale(options: SvmChainOptions = {}): Promise<SvmSale> {
  const [chain, buyer, seller, feePayer] = await Promise.all([
    startSvmChain(options),
    newSvmAccount(),
    newSvmAccount(),
    newSvmAccount(),
  ])
  await chain.setLamports(feePayer.address, 1_000_000_000n)
  await chain.giveTokens(buyer.address, 1_000_000n)
  await chain.giveTokens(seller.address, 0n)
  const requirements = {
    scheme: 'exact',
    network: SOLANA_DEVNET_CAIP2,
    amount: '10000',
    asset: DEVNET_USDC,
    payTo: seller.address,
    maxTimeoutSeconds: 60,
    extra: { feePayer: feePayer.address },
  } as const
  return { chain, buyer, seller: seller.address, feePayer, requirements }
}

export function newSvmAccount(): Promise<KeyPairSigner> {
  return createKeyPairSignerFromPrivateKeyBytes(randomBytes(32))
}

/** A payment as the official client signs it. */
export async function signSvmPayment({ chain, buyer, requirements }: SvmSale) {
  const client = new ExactClient(buyer, { rpcUrl: chain.rpcUrl })
  const payload = await client.createPaymentPayload(2, requirements)
  return { ...payload, resource: { url: 'http://localhost/' }, accepted: requirements }
}

/** The official facilitator of scheme exact, without its server. */
export function svmFacilitator({ chain, feePayer }: Pick<SvmSale, 'chain' | 'feePayer'>): ExactFacilitator {
  return new ExactFacilitator(toFacilitatorSvmSigner(feePayer, { defaultRpcUrl: chain.rpcUrl }))
}

/** The account that holds the tokens of an owner. */
export async function svmTokenAccount(owner: string): Promise<string> {
  const [account] = await findAssociatedTokenPda({
    owner: address(owner),
    mint: address(DEVNET_USDC),
    tokenProgram: TOKEN_PROGRAM_ADDRESS,
  })
  return account
}

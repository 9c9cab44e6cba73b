import { createHash } from 'node:crypto'
import type { Address } from '../base/address.ts'
import type { JsonObject } from '../base/json.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { judgeProof, readProof, signInDemand, type Judged } from './siwx.ts'

/** Where a proof is sent: the header of HTTP, the key in `_meta` of a tool call, and the name of the extension. */
export const SIGN_IN = 'sign-in-with-x'

export interface SignInDeps {
  readonly ledger: Pick<Ledger, 'addExpiring'>
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
}

export type FoundSigner = { readonly kind: 'signer'; readonly address: Address } | NoSigner

export interface NoSigner {
  readonly kind: 'missing' | 'refused'
  readonly detail: string
}

export const NO_PROOF: NoSigner = {
  kind: 'missing',
  detail: 'sign the message of extensions["sign-in-with-x"] with the wallet you call for',
}

/** Who has signed a proof for this address of ours. A proof is accepted once. */
export async function findSigner(deps: SignInDeps, sent: unknown, uri: string): Promise<FoundSigner> {
  const refuse = (detail: string): FoundSigner => ({ kind: 'refused', detail })
  const proof = readProof(sent)
  if (proof === undefined) return refuse('the proof cannot be read')
  const judged = judgeProof(proof, uri, deps.now())
  if (judged.kind === 'refused') return refuse(judged.detail)
  if (await isUsed(deps, judged)) return refuse('this proof was used before')
  return { kind: 'signer', address: judged.address }
}

/** Uses a nonce once across all processes: of concurrent copies, at most the one that stores the only mark passes. */
async function isUsed(
  { ledger, random }: SignInDeps,
  { address, nonce, until }: Extract<Judged, { readonly kind: 'signer' }>,
): Promise<boolean> {
  const name = createHash('sha256').update(`sign-in:${address}:${nonce}`).digest('base64url')
  return (await ledger.addExpiring(name, Buffer.from(random(16)).toString('hex'), until)) > 1
}

/** The extensions of an answer that asks for a proof. */
export function demandSignIn(
  { now, random }: Omit<SignInDeps, 'ledger'>,
  asked: { readonly uri: string; readonly networks: readonly string[] },
): JsonObject {
  const nonce = Buffer.from(random(16)).toString('hex')
  return { [SIGN_IN]: signInDemand({ ...asked, nonce }, now()) }
}

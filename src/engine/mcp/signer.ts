import { createHash } from 'node:crypto'
import type { Address } from '../address.ts'
import type { JsonObject } from '../json.ts'
import { judgeProof, readProof, signInDemand, type Judged } from '../protocols/x402/sign-in.ts'
import type { Counter, ToolCall } from './tool-call.ts'
import { problem, type ToolReply } from './result.ts'

/** Where a proof stands in the `_meta` of a call, and x402's header for it; the first goes before the second. */
const META = 'sign-in-with-x'

export type Found =
  | { readonly kind: 'known'; readonly signer: Address | undefined }
  | { readonly kind: 'refused'; readonly reply: ToolReply }

/** Who has signed in with a call of a free tool: nobody, an address, or somebody whose proof is not good. */
export async function findSigner(counter: Counter, call: ToolCall): Promise<Found> {
  const { toolbox, tool, meta, headers } = call
  const sent = meta[META] ?? headers[META]
  if (sent === undefined) {
    if (tool.face.tool.requires !== 'signer') return { kind: 'known', signer: undefined }
    const detail = 'sign the message of extensions["sign-in-with-x"] with the wallet you call for'
    return refuse('signature_required', detail, demandOf(counter, call))
  }
  const proof = readProof(sent)
  if (proof === undefined)
    return refuse('signature_refused', 'the proof cannot be read', demandOf(counter, call))
  const judged = judgeProof(proof, toolbox.url, counter.now())
  if (judged.kind === 'refused') return refuse('signature_refused', judged.detail, demandOf(counter, call))
  if (await isUsed(counter, judged))
    return refuse('signature_refused', 'this proof was used before', demandOf(counter, call))
  return { kind: 'known', signer: judged.address }
}

/** Takes a nonce, once over all processes: of copies that come at once, the first mark is the only one when it is kept. */
async function isUsed(
  { purchases: { ledger }, random }: Counter,
  { address, nonce, until }: Extract<Judged, { readonly kind: 'signer' }>,
): Promise<boolean> {
  const name = createHash('sha256').update(`sign-in:${address}:${nonce}`).digest('base64url')
  return (await ledger.remember(name, Buffer.from(random(16)).toString('hex'), until)) > 1
}

function demandOf({ random, now }: Counter, { toolbox: { url, networks } }: ToolCall): JsonObject {
  const nonce = Buffer.from(random(16)).toString('hex')
  return { extensions: { [META]: signInDemand({ uri: url, nonce, networks }, now()) } }
}

function refuse(code: 'signature_required' | 'signature_refused', detail: string, extra: JsonObject): Found {
  return { kind: 'refused', reply: problem(code, detail, { charged: 'no', extra }) }
}

import { keccak256 } from 'js-sha3'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { sameAddress, toChecksum, type Address } from '../base/address.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'
import { once } from '../base/once.ts'
import { signInText, type SignInMessage } from '../base/sign-in-message.ts'
import { recoverSigner, splitSignature } from '../chains/evm/signature.ts'

/** A proof of x402’s extension sign-in-with-x: a message and its signature. */
export interface Proof extends SignInMessage {
  readonly type: 'eip191'
  readonly signature: string
}

/** How long a proof is valid after its message was made; it is accepted once. */
const PROOF_MS = 300_000

/** How far the clock of a client may differ from ours. */
const SKEW_MS = 30_000

/** One line of a message: a line break in a field would let it pass for other fields. */
const line = { type: 'string', maxLength: 2048, pattern: '^[^\\u0000-\\u001f]*$' }
const moment = {
  type: 'string',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(?:\\.\\d{1,9})?(?:Z|[+-]\\d{2}:\\d{2})$',
}

const schema = {
  type: 'object',
  required: ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'],
  properties: {
    domain: line,
    address: { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' },
    statement: line,
    uri: line,
    version: { const: '1' },
    chainId: { type: 'string', pattern: '^eip155:[1-9][0-9]{0,15}$' },
    type: { const: 'eip191' },
    nonce: { type: 'string', pattern: '^[A-Za-z0-9]{8,128}$' },
    issuedAt: moment,
    expirationTime: moment,
    notBefore: moment,
    requestId: line,
    resources: { type: 'array', maxItems: 32, items: line },
    signature: { type: 'string', pattern: '^0x(?:[0-9a-fA-F]{2}){1,2048}$' },
  },
}

const proofForm = once(() => new Ajv2020().compile<Proof>(schema))

/** Longest text that is looked at. */
const LONGEST = 16_384

/** Reads a proof: an object, or the text of the header (base64 of its JSON); undefined when it is invalid. */
export function readProof(sent: unknown): Proof | undefined {
  if (typeof sent !== 'string') return proofForm()(sent) ? sent : undefined
  if (sent.length > LONGEST) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(sent, 'base64').toString('utf8'))
    return isJsonObject(value) && proofForm()(value) ? value : undefined
  } catch {
    return undefined
  }
}

export type Judged =
  /** `until`: milliseconds since the epoch, until which the nonce must not be accepted again. */
  | { readonly kind: 'signer'; readonly address: Address; readonly nonce: string; readonly until: number }
  | { readonly kind: 'refused'; readonly detail: string }

/** Whether an address has signed, for this origin and time. The caller checks that the nonce is new. */
export function judgeProof(proof: Proof, uri: string, now: number): Judged {
  const { host } = new URL(uri)
  if (proof.domain !== host) return refuse(`domain is not ${host}`)
  if (proof.uri !== uri) return refuse(`uri is not ${uri}`)
  const issued = Date.parse(proof.issuedAt)
  if (!(issued <= now + SKEW_MS)) return refuse('issuedAt is in the future')
  if (!(issued > now - PROOF_MS)) return refuse('issuedAt is more than five minutes ago')
  if (proof.expirationTime !== undefined && !(Date.parse(proof.expirationTime) > now))
    return refuse('expirationTime has passed')
  if (proof.notBefore !== undefined && !(Date.parse(proof.notBefore) <= now + SKEW_MS))
    return refuse('notBefore is in the future')
  const split = splitSignature(proof.signature)
  const signer = split === undefined ? undefined : recoverSigner(digestOf(signInText(proof)), split)
  if (signer === undefined || !sameAddress(signer, proof.address))
    return refuse('the signature is not that of address; contract wallets cannot sign in here')
  return { kind: 'signer', address: toChecksum(signer), nonce: proof.nonce, until: issued + PROOF_MS }
}

function refuse(detail: string): Judged {
  return { kind: 'refused', detail }
}

/** The message that proves an address when signed: the extension as a challenge contains it. */
export function signInDemand(
  {
    uri,
    nonce,
    networks,
  }: { readonly uri: string; readonly nonce: string; readonly networks: readonly string[] },
  now: number,
): JsonObject {
  const chains = networks.length === 0 ? ['eip155:1'] : networks
  return {
    info: {
      domain: new URL(uri).host,
      uri,
      version: '1',
      nonce,
      issuedAt: new Date(now).toISOString(),
      expirationTime: new Date(now + PROOF_MS).toISOString(),
    },
    supportedChains: chains.map((chainId) => ({ chainId, type: 'eip191' })),
  }
}

/** EIP-191, version 0x45. */
function digestOf(message: string): Uint8Array {
  const bytes = Buffer.from(message, 'utf8')
  const prefix = Buffer.from(`\u0019Ethereum Signed Message:\n${bytes.length}`, 'utf8')
  return new Uint8Array(keccak256.arrayBuffer(Buffer.concat([prefix, bytes])))
}

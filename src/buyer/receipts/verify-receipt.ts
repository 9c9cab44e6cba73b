import { createPublicKey, verify } from 'node:crypto'
import { isJsonObject, type JsonObject, parseJson } from '../../engine/base/json.ts'
import { publishedKey } from './did-web.ts'

/** Of x402’s extension offer-receipt, or of Ratecard, which also states amounts and the digest of the answer. */
export type ReceiptForm = 'x402' | 'ratecard'

export type CheckedReceipt =
  | {
      readonly kind: 'verified'
      readonly form: ReceiptForm
      /** DID URL of the key. */
      readonly signer: string
      readonly claims: JsonObject
    }
  | { readonly kind: 'refused'; readonly reason: string }

/** JWS algorithms (RFC 7518, RFC 8037, RFC 8812), with the curve of their keys and their hash. */
const ALGORITHMS: Readonly<Record<string, { readonly curve: string; readonly hash: string | null }>> = {
  EdDSA: { curve: 'Ed25519', hash: null },
  ES256K: { curve: 'secp256k1', hash: 'sha256' },
  ES256: { curve: 'P-256', hash: 'sha256' },
}

/**
 * Verifies a receipt as x402, extension offer-receipt, §5.5 says: the signature, and that its key belongs to the service
 * that the receipt names, by its DID document.
 */
export async function verifyReceipt(jws: string): Promise<CheckedReceipt> {
  const [head = '', body = '', signature = ''] = jws.split('.')
  const [header, claims] = [head, body].map(partOf)
  if (header === undefined || claims === undefined) return refuse('it cannot be read')
  const form = formOf(header, claims)
  if (form === undefined) return refuse('it is not a receipt')
  const { alg, kid } = header
  const algorithm = typeof alg === 'string' ? ALGORITHMS[alg] : undefined
  if (algorithm === undefined) return refuse('its algorithm is none of EdDSA, ES256K and ES256')
  if (typeof kid !== 'string') return refuse('it does not name its key')
  const resource = claims[RESOURCE[form]]
  if (typeof resource !== 'string') return refuse('it does not name what was bought')
  const found = await publishedKey(kid, resource)
  if (found.kind === 'refused') return found
  if (found.jwk['crv'] !== algorithm.curve) return refuse('its key is of another kind')
  const key = createPublicKey({ key: { ...found.jwk }, format: 'jwk' })
  const isSigned = verify(
    algorithm.hash,
    Buffer.from(`${head}.${body}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  return isSigned ? { kind: 'verified', form, signer: kid, claims } : refuse('its signature is wrong')
}

/** The member that names what was paid for. */
const RESOURCE = { x402: 'resourceUrl', ratecard: 'resource' } as const

function formOf({ typ }: JsonObject, claims: JsonObject): ReceiptForm | undefined {
  const form = typ === 'ratecard-receipt' ? 'ratecard' : 'x402'
  const resource = claims[RESOURCE[form]]
  const isComplete = claims['version'] === 1 && typeof claims['payer'] === 'string'
  const isReceipt = form === 'ratecard' || typeof claims['issuedAt'] === 'number'
  return isComplete && isReceipt && typeof resource === 'string' && URL.canParse(resource) ? form : undefined
}

function partOf(text: string): JsonObject | undefined {
  const value = parseJson(Buffer.from(text, 'base64url').toString())
  return isJsonObject(value) ? value : undefined
}

function refuse(reason: string): CheckedReceipt {
  return { kind: 'refused', reason }
}

import { createPrivateKey, sign, type KeyObject } from 'node:crypto'

/** A secret API key of the Coinbase Developer Platform (CDP), as its portal gives it out. */
export interface CdpCredentials {
  readonly keyId: string
  /** Base64 of an Ed25519 seed and its public key, 64 bytes, or an EC P-256 private key in PEM. */
  readonly keySecret: string
}

export interface CdpKey {
  readonly id: string
  readonly key: KeyObject
  readonly algorithm: 'EdDSA' | 'ES256'
}

/** Undefined when the secret is neither of the two kinds of key. */
export function readCdpKey({ keyId: id, keySecret }: CdpCredentials): CdpKey | undefined {
  if (id === '') return undefined
  try {
    if (keySecret.includes('-----BEGIN')) {
      // Variables hold the line breaks of a PEM as two characters.
      const key = createPrivateKey(keySecret.replaceAll(String.raw`\n`, '\n'))
      const isP256 = key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
      return isP256 ? { id, key, algorithm: 'ES256' } : undefined
    }
    const bytes = Buffer.from(keySecret, 'base64')
    if (bytes.length !== 64) return undefined
    const [d, x] = [bytes.subarray(0, 32).toString('base64url'), bytes.subarray(32).toString('base64url')]
    const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' })
    return { id, key, algorithm: 'EdDSA' }
  } catch {
    return undefined
  }
}

/** Seconds a token is good for. */
const LIFETIME = 120

interface CdpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly random: (bytes: number) => Uint8Array
}

/**
 * A bearer token for one request to CDP: a JWT (RFC 7519) that names method, host and path and ends two minutes later,
 * with the claims that the platform documents for its REST APIs.
 */
export function cdpToken({ id, key, algorithm }: CdpKey, request: CdpRequest): string {
  const { host, pathname } = new URL(request.url)
  const issuedAt = Math.floor(request.now / 1_000)
  const nonce = Buffer.from(request.random(16)).toString('hex')
  const signed = [
    { alg: algorithm, kid: id, typ: 'JWT', nonce },
    {
      sub: id,
      iss: 'cdp',
      aud: ['cdp_service'],
      uris: [`${request.method} ${host}${pathname}`],
      iat: issuedAt,
      nbf: issuedAt,
      exp: issuedAt + LIFETIME,
    },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature =
    algorithm === 'EdDSA'
      ? sign(null, Buffer.from(signed), key)
      : // RFC 7518 §3.4: both numbers of the signature, not their DER.
        sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

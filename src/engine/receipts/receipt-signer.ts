import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from 'node:crypto'
import type { JsonObject } from '../base/json.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { ratecardReceipt, x402Receipt } from './receipt-claims.ts'

/** The receipts of one charged and answered payment, as JWS in compact serialization (RFC 7515). */
export interface SignedReceipts {
  /** Of x402’s extension offer-receipt, §5.2. */
  readonly x402: string
  readonly ratecard: string
}

/** Signs receipts with the first of its keys; all are published, so that receipts of an earlier key stay valid. */
export interface ReceiptSigner {
  /**
   * The same receipts whenever they are asked for. Undefined while there is no complete answer, and for payments that
   * were taken without a receipt key.
   */
  sign(record: PaymentRecord, receipt: Receipt): SignedReceipts | undefined
  /** W3C DID Core: the public keys, for `/.well-known/did.json`. */
  readonly didDocument: JsonObject
}

/** Undefined without a key. `keys`: seeds of Ed25519 (RFC 8032), 0x and 64 hexadecimal digits. */
export function openReceiptSigner(
  keys: readonly `0x${string}`[],
  baseUrl: string,
): ReceiptSigner | undefined {
  const did = didOf(baseUrl)
  const opened = keys.map((key) => openKey(key, did))
  const [current] = opened
  if (current === undefined) return undefined
  const { id: kid, key } = current
  const signed = (header: JsonObject, claims: JsonObject): string => {
    const text = [{ alg: 'EdDSA', kid, ...header }, claims].map(encode).join('.')
    return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
  }
  return {
    sign: (record, receipt) => {
      const x402 = x402Receipt(record)
      const ratecard = ratecardReceipt(record, receipt)
      if (x402 === undefined || ratecard === undefined) return undefined
      return { x402: signed({}, x402), ratecard: signed({ typ: 'ratecard-receipt' }, ratecard) }
    },
    didDocument: {
      '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
      id: did,
      verificationMethod: opened.map(({ id, jwk }) => ({
        id,
        type: 'JsonWebKey2020',
        controller: did,
        publicKeyJwk: jwk,
      })),
      assertionMethod: opened.map(({ id }) => id),
    },
  }
}

/** Method did:web: the host, its port percent-encoded, and the segments of the base path. */
function didOf(baseUrl: string): string {
  const { host, pathname } = new URL(baseUrl)
  const segments = pathname.split('/').filter((each) => each !== '')
  return ['did:web', encodeURIComponent(host), ...segments].join(':')
}

interface ReceiptKey {
  /** DID URL. */
  readonly id: string
  readonly key: KeyObject
  readonly jwk: JsonObject
}

/** PKCS #8 of an Ed25519 key, up to its seed (RFC 8410 §7). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

function openKey(seed: `0x${string}`, did: string): ReceiptKey {
  const der = Buffer.concat([PKCS8, Buffer.from(seed.slice(2), 'hex')])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x }
  // RFC 7638 §3.2: members in alphabetical order.
  const thumbprint = hash('sha256', JSON.stringify({ crv: jwk.crv, kty: jwk.kty, x }), 'base64url')
  return { id: `${did}#${thumbprint.slice(0, 12)}`, key, jwk }
}

function encode(part: JsonObject): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

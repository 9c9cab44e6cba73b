import { Ajv2020 } from 'ajv/dist/2020.js'
import { keccak256 } from 'js-sha3'
import { isPrivate, pointFromScalar, recover } from 'tiny-secp256k1'
import { sameAddress, toChecksum, type Address } from '../../address.ts'
import { word, type Sender, type TransactionReceipt } from '../../chains/evm/chain.ts'
import { blockOf } from '../../chains/evm/finality.ts'
import { TRANSFER } from '../../chains/evm/transfer-log.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { Refusal } from '../../errors.ts'
import { isJsonObject, parseJson, type JsonObject } from '../../json.ts'
import type { Network } from '../../networks.ts'
import type { Detection, Settlement } from '../protocol.ts'
import type { Requirements } from './requirements.ts'
import {
  bytes,
  explainRevert,
  NODE_UNREACHABLE,
  selector,
  type ExpectedTransfer,
  type TokenReader,
} from './token.ts'
import type { Log } from '../../chains/evm/event-log.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'

/** EIP-3009 TransferWithAuthorization as x402 carries it: every number a decimal string, addresses spelt by EIP-55. */
export interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: `0x${string}`
}

/** PAYMENT-SIGNATURE, decoded: scheme exact on EVM with EIP-3009. */
export interface PaymentPayload {
  readonly x402Version: 2
  readonly resource?: { readonly url: string } | null
  readonly accepted: Requirements
  readonly payload: { readonly signature: `0x${string}`; readonly authorization: Authorization }
  readonly extensions?: Extensions | null
}

/** Extensions of a payment: added by the client, or copied from the challenge. */
interface Extensions {
  readonly [IDENTIFIER]?: { readonly info?: { readonly id?: string } | null } | null
  readonly [name: string]: unknown
}

/**
 * The payment-identifier extension: a client names its purchase, so that it may ask for the same one again with another
 * payment. Offered, never demanded.
 */
export const IDENTIFIER = 'payment-identifier'

/** The extension in a challenge. The specification defines the form of an id; every byte is sent with every 402. */
export const IDENTIFIER_EXTENSION = { info: { required: false }, schema: {} }

/** The extension as a payment carries it, with an id or without. */
const identifierSchema = {
  type: ['object', 'null'],
  properties: {
    info: {
      type: ['object', 'null'],
      properties: { id: { type: 'string', pattern: '^[A-Za-z0-9_-]{16,128}$' } },
    },
  },
}

const IDENTIFIER_FORM = `extensions["${IDENTIFIER}"].info.id is not 16 to 128 letters, digits, - or _`

const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' }
/** Hexadecimal and signs are refused, for the token's contract and we must read the same number. */
const decimal = { type: 'string', pattern: '^(0|[1-9][0-9]{0,77})$' }

const schema = {
  type: 'object',
  required: ['x402Version', 'accepted', 'payload'],
  properties: {
    x402Version: { const: 2 },
    resource: {
      type: ['object', 'null'],
      required: ['url'],
      properties: { url: { type: 'string', maxLength: 4096 } },
    },
    accepted: {
      type: 'object',
      required: ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'],
      properties: {
        scheme: { type: 'string' },
        network: { type: 'string' },
        amount: { type: 'string' },
        asset: { type: 'string' },
        payTo: { type: 'string' },
        maxTimeoutSeconds: { type: 'number' },
        extra: { type: ['object', 'null'] },
      },
    },
    payload: {
      type: 'object',
      required: ['signature', 'authorization'],
      properties: {
        signature: { type: 'string', pattern: '^0x([0-9a-fA-F]{2}){65,2048}$' },
        authorization: {
          type: 'object',
          required: ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'],
          properties: {
            from: address,
            to: address,
            value: decimal,
            validAfter: decimal,
            validBefore: decimal,
            nonce: { type: 'string', pattern: '^0x[0-9a-fA-F]{64}$' },
          },
        },
      },
    },
    extensions: { type: ['object', 'null'], properties: { [IDENTIFIER]: identifierSchema } },
  },
}

const validate = new Ajv2020({ allowUnionTypes: true, validateSchema: false }).compile<PaymentPayload>(schema)

/** Longest header that is looked at; a real one is below 4 KB. */
const LONGEST = 32_768
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

export type Decoded =
  | { readonly kind: 'payload'; readonly payload: PaymentPayload }
  | Extract<Detection, { readonly kind: 'malformed' }>

/** Reads a PAYMENT-SIGNATURE header: standard base64 (padding optional) of a UTF-8 JSON PaymentPayload. */
export function decodePayload(header: string): Decoded {
  if (header.length > LONGEST || !BASE64.test(header)) return malformed('the text is not standard base64')
  const value = parseJson(Buffer.from(header, 'base64').toString('utf8'))
  return isJsonObject(value) ? readPayload(value) : malformed('the text is not the base64 of a JSON object')
}

/** Reads a payment that came as JSON. */
export function readPayload(value: unknown): Decoded {
  if (!isJsonObject(value)) return malformed('the payment is not a JSON object')
  if (value['x402Version'] !== 2) return wrongVersion(value['x402Version'])
  if (validate(value))
    return fitsToken(value) ? { kind: 'payload', payload: spell(value) } : malformed(TOO_LARGE)
  const [first] = validate.errors ?? []
  const missing: unknown = first?.keyword === 'required' ? first.params['missingProperty'] : undefined
  const place = first?.instancePath ?? ''
  if (typeof missing === 'string') return malformed(`${place}/${missing} is missing`)
  if (place.startsWith(`/extensions/${IDENTIFIER}`)) return malformed(IDENTIFIER_FORM)
  return malformed(`${place} is not what x402 v2 (scheme exact, EIP-3009) asks for`)
}

const LARGEST = 2n ** 256n - 1n
const TOO_LARGE = '/payload/authorization has a number that is no uint256'

function fitsToken({ payload: { authorization } }: PaymentPayload): boolean {
  const { value, validAfter, validBefore } = authorization
  return [value, validAfter, validBefore].every((number) => BigInt(number) <= LARGEST)
}

/** A wrong letter case changes no address and no signature, and yet viem refuses to encode it. */
function spell(payload: PaymentPayload): PaymentPayload {
  const { signature, authorization } = payload.payload
  const { from, to } = authorization
  const spelt = { ...authorization, from: toChecksum(from), to: toChecksum(to) }
  return { ...payload, payload: { signature, authorization: spelt } }
}

function wrongVersion(version: unknown): Decoded {
  if (typeof version !== 'number') return malformed('x402Version must be the number 2')
  return {
    kind: 'malformed',
    code: 'invalid_x402_version',
    detail: `x402Version ${version} is not supported. ${VERSION_2}`,
  }
}

/** What a client of another version has to send instead. */
export const VERSION_2 =
  'Send a JSON object with "x402Version": 2, one offer copied unchanged into "accepted", and "payload": ' +
  'its base64 in the header PAYMENT-SIGNATURE, or the object in _meta["x402/payment"] of a call of a tool. ' +
  'The offers are in the response to an unpaid call; over HTTP, in its PAYMENT-REQUIRED header.'

function malformed(detail: string): Decoded {
  return { kind: 'malformed', code: 'invalid_payload', detail }
}

/** The listing data for a facilitator: the members of the 402 that a payment repeats. */
export interface Listing {
  /** Id of the operation. */
  readonly operation: string
  /** Without its URL. */
  readonly resource: JsonObject
  readonly extensions: JsonObject
}

/** An authorization as it was signed. */
export interface SignedAuthorization {
  readonly authorization: Authorization
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
}

/** What a payer signs, as typed data (EIP-712) of EIP-3009. */
export const TRANSFER_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

const FIELDS = 'address,address,uint256,uint256,uint256,bytes32'
/** The parts of Circle’s FiatTokenV2_2 that a payment needs (EIP-3009). */
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)
const TRANSFER_BY_CONTRACT = selector(`transferWithAuthorization(${FIELDS},bytes)`)

export const AUTHORIZATION_USED = `0x${keccak256('AuthorizationUsed(address,bytes32)')}` as const
export const AUTHORIZATION_CANCELED = `0x${keccak256('AuthorizationCanceled(address,bytes32)')}` as const

/** Hash of bytes in hexadecimal digits. */
function hashHex(...parts: readonly string[]): string {
  return keccak256(Buffer.from(parts.join(''), 'hex'))
}

/** A word that holds 32 bytes already. */
function bytes32(hex: `0x${string}`): string {
  return hex.slice(2)
}

/** The fields of an authorization as words of the ABI, in the order in which they are signed and sent. */
function fieldsOf({ from, to, value, validAfter, validBefore, nonce }: Authorization): string {
  const numbers = [value, validAfter, validBefore].map((decimal) => word(BigInt(decimal)))
  return [word(from), word(to), ...numbers, bytes32(nonce)].join('')
}

const TYPE_HASH = keccak256(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)
const DOMAIN_HASH = keccak256(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)

/** EIP-712 digest of an EIP-3009 authorization for the network’s token. */
export function authorizationDigest(network: Network, authorization: Authorization): Uint8Array {
  const fields = hashHex(TYPE_HASH, fieldsOf(authorization))
  return Buffer.from(hashHex('1901', domainSeparator(network), fields), 'hex')
}

const separators = new WeakMap<Network, string>()

/** EIP-712 domain separator of the network’s token, as the table has it: 64 hexadecimal digits. */
export function domainSeparator(network: Network): string {
  const known = separators.get(network)
  if (known !== undefined) return known
  const { token, chainId } = network
  const names = keccak256(token.name) + keccak256(token.version)
  const separator = hashHex(DOMAIN_HASH, names, word(BigInt(chainId)), word(token.address))
  separators.set(network, separator)
  return separator
}

/** Half the order of secp256k1: the token refuses signatures with a larger s (EIP-2), so they are refused here. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** The parts of a 65-byte signature as the token’s contract takes them; undefined when it would refuse them. */
interface SplitSignature {
  readonly r: `0x${string}`
  readonly s: `0x${string}`
  readonly v: 27 | 28
}

export function splitSignature(signature: string): SplitSignature | undefined {
  if (signature.length !== 132) return undefined
  const last = Number.parseInt(signature.slice(130), 16)
  const v = last === 0 || last === 27 ? 27 : last === 1 || last === 28 ? 28 : undefined
  const s = signature.slice(66, 130)
  if (v === undefined || BigInt(`0x${s}`) > HALF_ORDER) return undefined
  return { r: `0x${signature.slice(2, 66)}`, s: `0x${s}`, v }
}

/** The address whose key has signed `digest`, in lower case; undefined for an invalid signature. */
export function recoverSigner(digest: Uint8Array, { r, s, v }: SplitSignature): Address | undefined {
  try {
    const point = recover(digest, Buffer.from(r.slice(2) + s.slice(2), 'hex'), v === 27 ? 0 : 1, false)
    return point === null ? undefined : addressOfPoint(point)
  } catch {
    // r or s outside the curve's order: no key has signed this.
    return undefined
  }
}

/** The address of a private key; undefined when it is no key of the curve. */
export function addressOfKey(key: `0x${string}`): Address | undefined {
  const scalar = Buffer.from(key.slice(2), 'hex')
  const point = isPrivate(scalar) ? pointFromScalar(scalar, false) : null
  return point === null ? undefined : toChecksum(addressOfPoint(point))
}

function addressOfPoint(point: Uint8Array): Address {
  return `0x${keccak256(point.subarray(1)).slice(24)}`
}

/**
 * Calldata of the transfer: the (v,r,s) form for the signature of a key, and the bytes form for that of a contract
 * wallet, which must receive it unchanged.
 */
export function transferCall({ authorization, signature, signedBy }: SignedAuthorization): `0x${string}` {
  const fields = fieldsOf(authorization)
  const split = signedBy === 'key' ? splitSignature(signature) : undefined
  return split === undefined
    ? `0x${TRANSFER_BY_CONTRACT}${fields}${word(7n * 32n)}${bytes(signature)}`
    : `0x${TRANSFER_BY_KEY}${fields}${word(BigInt(split.v))}${bytes32(split.r)}${bytes32(split.s)}`
}

/**
 * Whether the token would carry the authorization out now, in a transaction with this gas and these fees: one call, and
 * two more to explain a refusal. `timeout`: milliseconds the node has for it.
 */
export async function simulate(
  { chain, token }: TokenReader,
  signed: SignedAuthorization,
  sender: Sender | undefined,
  timeout: number,
): Promise<Refusal | undefined> {
  const answer = await chain.call(token, transferCall(signed), sender, timeout)
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'refused' && /insufficient funds/i.test(answer.message)) return SENDER_UNFUNDED
  if (!isRevert(answer)) return NODE_UNREACHABLE
  const { from, nonce, value } = signed.authorization
  return {
    code: await explainRevert(chain, { token, from, nonce, value: BigInt(value) }, answer),
    detail: 'the token would not carry out this transfer',
  }
}

/**
 * Whether these logs show the authorization used and its money moved: both, on this token, for this amount, one right
 * after the other as the token writes them. Anything looser would let the transfer of one authorization count for several
 * that are used in the same transaction, for a payer may sign another transfer under the nonce of a payment.
 */
export function containsTransfer(
  logs: readonly Log[],
  { token, from, to, value, nonce }: ExpectedTransfer,
): boolean {
  const [payer, payee] = [`0x${word(from)}`, `0x${word(to)}`] as const
  const use = [AUTHORIZATION_USED, payer, nonce].join(' ').toLowerCase()
  const transfer = [TRANSFER, payer, payee, `0x${word(value)}`].join(' ')
  const ours = logs.filter(({ address }) => sameAddress(address, token))
  return ours.some(({ topics }, place) => {
    const next = ours[place + 1]
    if (next === undefined || topics.join(' ').toLowerCase() !== use) return false
    return [...next.topics, next.data].join(' ').toLowerCase() === transfer
  })
}

/** The proof that a payment was carried out. */
export function settled(
  { networkId }: { readonly networkId: string },
  { from, value }: ExpectedTransfer,
  { hash: transaction, gasCost, in: block }: Carried,
): Settlement {
  const moved = { transaction, network: networkId, payer: from, amount: value.toString() }
  const paid = gasCost === undefined ? {} : { gasCost: gasCost.toString() }
  return { kind: 'settled', receipt: { ...moved, ...paid, ...(block && blockOf(block)) } }
}

/** The transaction that has carried a payment out. */
interface Carried {
  readonly hash: string
  readonly gasCost?: bigint
  /** As a node of ours has shown it. */
  readonly in?: Pick<TransactionReceipt, 'block' | 'blockHash'>
}

/**
 * The signed authorization within the bytes of a transaction that carries it out, alone or together with others: its call
 * stands in them unchanged.
 */
export function findSigned(raw: string, expected: ExpectedTransfer): SignedAuthorization | undefined {
  const { from, to, value, nonce } = expected
  const fields = `${word(from)}${word(to)}${word(value)}([0-9a-f]{64})([0-9a-f]{64})${bytes32(nonce)}`
  const call = `(?:${TRANSFER_BY_KEY}${fields}0{62}(1b|1c)|${TRANSFER_BY_CONTRACT}${fields}${word(7n * 32n)})([0-9a-f]*)`
  const match = new RegExp(call.toLowerCase()).exec(raw.toLowerCase())
  if (match === null) return undefined
  const [, keyAfter, keyBefore, v, contractAfter, contractBefore, rest = ''] = match
  const decimal = (digits = '0'): string => BigInt(`0x${digits}`).toString()
  const authorization = {
    from,
    to,
    value: value.toString(),
    validAfter: decimal(keyAfter ?? contractAfter),
    validBefore: decimal(keyBefore ?? contractBefore),
    nonce,
  }
  if (v !== undefined) return { authorization, signature: `0x${rest.slice(0, 128)}${v}`, signedBy: 'key' }
  const size = Number.parseInt(rest.slice(0, 64), 16)
  return { authorization, signature: `0x${rest.slice(64, 64 + 2 * size)}`, signedBy: 'contract' }
}

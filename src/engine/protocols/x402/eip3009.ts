import { keccak256 } from 'js-sha3'
import { isPrivate, pointFromScalar, recover } from 'tiny-secp256k1'
import { sameAddress, toChecksum, type Address } from '../../address.ts'
import { TRANSFER } from '../../chains/evm/logs.ts'
import { word, type Chain, type Log, type Sender } from '../../chains/evm/chain.ts'
import { isRevert, type RpcAnswer } from '../../chains/evm/json-rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { ErrorCode, Refusal } from '../../errors.ts'
import type { Network } from '../../networks.ts'
import type { Settlement } from '../protocol.ts'
import type { Authorization } from './payload.ts'

/** An authorization as it was signed. */
export interface SignedAuthorization {
  readonly authorization: Authorization
  readonly signature: `0x${string}`
  /** Whose signature it is: of the payer’s key, or one that a contract wallet accepts (ERC-1271). */
  readonly signedBy: 'key' | 'contract'
}

/** What must have happened on chain for a payment to be settled. */
export interface ExpectedTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  /** Atomic units. */
  readonly value: bigint
  /** Nonce of the authorization. */
  readonly nonce: `0x${string}`
}

/** A token, and a node to ask. */
interface TokenReader {
  readonly chain: Chain
  readonly token: Address
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
/** The parts of Circle’s FiatTokenV2_2 that a payment needs (EIP-20, EIP-3009), and of contract wallets. */
const TRANSFER_BY_KEY = selector(`transferWithAuthorization(${FIELDS},uint8,bytes32,bytes32)`)
const TRANSFER_BY_CONTRACT = selector(`transferWithAuthorization(${FIELDS},bytes)`)
const STATE = selector('authorizationState(address,bytes32)')
const BALANCE = selector('balanceOf(address)')
const IS_VALID_SIGNATURE = selector('isValidSignature(bytes32,bytes)')
const ERROR = selector('Error(string)')

export const AUTHORIZATION_USED = `0x${keccak256('AuthorizationUsed(address,bytes32)')}` as const
export const AUTHORIZATION_CANCELED = `0x${keccak256('AuthorizationCanceled(address,bytes32)')}` as const

function selector(signature: string): string {
  return keccak256(signature).slice(0, 8)
}

/** Hash of bytes in hexadecimal digits. */
function hashHex(...parts: readonly string[]): string {
  return keccak256(Buffer.from(parts.join(''), 'hex'))
}

/** A word that holds 32 bytes already. */
function bytes32(hex: `0x${string}`): string {
  return hex.slice(2)
}

/** Bytes at the end of calldata: their length, then the bytes padded to whole words. */
function bytes(hex: `0x${string}`): string {
  const digits = hex.slice(2)
  return word(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
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

/** Calldata that asks whether an authorization was used or canceled. */
export function stateCall(authorizer: Address, nonce: `0x${string}`): `0x${string}` {
  return `0x${STATE}${word(authorizer)}${bytes32(nonce)}`
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
  const code = reasonCode(`${revertReason(answer.data) ?? ''} ${answer.message}`)
  const { from, nonce, value } = signed.authorization
  return {
    code: code ?? (await diagnose(chain, { token, from, nonce, value: BigInt(value) })),
    detail: 'the token would not carry out this transfer',
  }
}

export const NODE_UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}

/** The token’s own words (FiatTokenV2_2), as codes. */
const REASONS: readonly [RegExp, ErrorCode][] = [
  [/authorization is used or canceled/i, 'invalid_exact_evm_nonce_already_used'],
  [/exceeds balance/i, 'invalid_exact_evm_insufficient_balance'],
  [/invalid signature/i, 'invalid_exact_evm_signature'],
  [/authorization is expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/authorization is not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
]

function reasonCode(text: string): ErrorCode | undefined {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1]
}

/** The sentence a contract has reverted with, from the node’s revert data. */
function revertReason(data: string | undefined): string | undefined {
  return data?.slice(2, 10).toLowerCase() === ERROR ? decodeText(data.slice(10)) : undefined
}

/** A string as the ABI encodes a result of one: where it begins, its length, its bytes. Takes hexadecimal digits. */
export function decodeText(digits: string): string | undefined {
  const encoded = Buffer.from(digits, 'hex')
  if (encoded.length < 64) return undefined
  const length = Number(BigInt(`0x${encoded.toString('hex', 32, 64)}`))
  return length > encoded.length - 64 ? undefined : encoded.toString('utf8', 64, 64 + length)
}

async function diagnose(chain: Chain, expected: Omit<ExpectedTransfer, 'to'>): Promise<ErrorCode> {
  const [balance, used] = await Promise.all([
    balanceOf({ chain, token: expected.token }, expected.from),
    isUsed(chain, expected),
  ])
  if (used === true) return 'invalid_exact_evm_nonce_already_used'
  if (balance !== undefined && balance < expected.value) return 'invalid_exact_evm_insufficient_balance'
  return 'invalid_exact_evm_transaction_simulation_failed'
}

/** What an account holds of the token, in atomic units; undefined when the node does not say. */
export async function balanceOf(
  { chain, token }: TokenReader,
  account: Address,
): Promise<bigint | undefined> {
  return numberIn(await chain.read(token, `0x${BALANCE}${word(account)}`))
}

/** Whether the authorization was used or canceled, now or up to a block; undefined when the node does not say. */
export async function isUsed(
  chain: Chain,
  { token, from, nonce }: Pick<ExpectedTransfer, 'token' | 'from' | 'nonce'>,
  block?: bigint,
): Promise<boolean | undefined> {
  const data = stateCall(from, nonce)
  const answer = await chain.read(token, data, block)
  const state = numberIn(answer)
  return state === undefined ? undefined : state === 1n
}

function numberIn(answer: RpcAnswer<`0x${string}`>): bigint | undefined {
  return answer.kind === 'result' && answer.result.length === 66 ? BigInt(answer.result) : undefined
}

/** Whether a contract wallet accepts a signature (ERC-1271); an address without code accepts none. */
export async function verifyErc1271(
  chain: Chain,
  wallet: Address,
  digest: Uint8Array,
  signature: `0x${string}`,
): Promise<Refusal | undefined> {
  const head = Buffer.from(digest).toString('hex') + word(64n)
  const answer = await chain.call(wallet, `0x${IS_VALID_SIGNATURE}${head}${bytes(signature)}`)
  if (answer.kind === 'result' && VALID.test(answer.result.slice(0, 66))) return undefined
  if (answer.kind !== 'result' && !isRevert(answer)) return NODE_UNREACHABLE
  const isWallet = answer.kind !== 'result' || answer.result !== '0x'
  return { code: 'invalid_exact_evm_signature', detail: isWallet ? WRONG_WALLET : WRONG_KEY }
}

/** The one answer that means yes, in a word of 32 bytes. */
const VALID = /^0x1626ba7e0{56}$/i
const WRONG_KEY = 'the signature is not the one of authorization.from for this token and chain'
const WRONG_WALLET = 'the paying contract does not accept this signature'

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
  { hash: transaction, gasCost }: { readonly hash: string; readonly gasCost?: bigint },
): Settlement {
  const moved = { transaction, network: networkId, payer: from, amount: value.toString() }
  const receipt = gasCost === undefined ? moved : { ...moved, gasCost: gasCost.toString() }
  return { kind: 'settled', receipt }
}

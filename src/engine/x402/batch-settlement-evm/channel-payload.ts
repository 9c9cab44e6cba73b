import { Ajv2020 } from 'ajv/dist/2020.js'
import { toChecksum } from '../../base/address.ts'
import { faultOf, malformed, type Malformed, type PaymentPayload } from '../payload.ts'
import type { ChannelConfig, ChannelId } from '../../base/channel-config.ts'
import type { DepositAuthorization, PermitAuthorization, TransferAuthorization } from './typed-data.ts'
import { ADDRESS, BYTES32, NONCE, UINT256 } from '../evm-fields.ts'
import { readApproval } from '../gas-sponsoring.ts'

/** A cumulative promise: of the channel, up to `ceiling` may be claimed in all. */
export interface Voucher {
  readonly channelId: ChannelId
  /** Atomic units. */
  readonly ceiling: bigint
  readonly signature: `0x${string}`
}

/** The `payload` of scheme batch-settlement on EVM. */
export interface ChannelPayload {
  readonly type: 'deposit' | 'voucher' | 'refund'
  readonly config: ChannelConfig
  readonly voucher: Voucher
  /** Of a deposit. */
  readonly deposit?: DepositAuthorization
  /** Of a refund: atomic units; undefined: all that is left. */
  readonly amount?: bigint
}

interface Sent {
  readonly type: 'deposit' | 'voucher' | 'refund'
  readonly channelConfig: ChannelConfig
  readonly voucher: {
    readonly channelId: `0x${string}`
    readonly maxClaimableAmount: string
    readonly signature: `0x${string}`
  }
  readonly deposit?: {
    readonly amount: string
    readonly authorization: {
      readonly erc3009Authorization?: Omit<TransferAuthorization, 'method' | 'amount'>
      readonly permit2Authorization?: Omit<PermitAuthorization, 'method' | 'amount' | 'approval'>
    }
  }
  readonly amount?: string
}

const uint128 = { type: 'string', pattern: '^(0|[1-9][0-9]{0,38})$' }
const signature = { type: 'string', pattern: '^0x([0-9a-fA-F]{2}){1,2048}$' }

const schema = {
  type: 'object',
  required: ['type', 'channelConfig', 'voucher'],
  properties: {
    type: { enum: ['deposit', 'voucher', 'refund'] },
    channelConfig: {
      type: 'object',
      required: [
        'payer',
        'payerAuthorizer',
        'receiver',
        'receiverAuthorizer',
        'token',
        'withdrawDelay',
        'salt',
      ],
      properties: {
        payer: ADDRESS,
        payerAuthorizer: ADDRESS,
        receiver: ADDRESS,
        receiverAuthorizer: ADDRESS,
        token: ADDRESS,
        withdrawDelay: { type: 'integer', minimum: 0, maximum: 2 ** 40 - 1 },
        salt: BYTES32,
      },
    },
    voucher: {
      type: 'object',
      required: ['channelId', 'maxClaimableAmount', 'signature'],
      properties: { channelId: BYTES32, maxClaimableAmount: uint128, signature },
    },
    deposit: {
      type: 'object',
      required: ['amount', 'authorization'],
      properties: {
        amount: uint128,
        authorization: {
          type: 'object',
          anyOf: [{ required: ['erc3009Authorization'] }, { required: ['permit2Authorization'] }],
          properties: {
            // The rest of what is signed follows from the channel: where it differs, the signature does not fit.
            permit2Authorization: {
              type: 'object',
              required: ['nonce', 'deadline', 'signature'],
              properties: { nonce: NONCE, deadline: UINT256, signature },
            },
            erc3009Authorization: {
              type: 'object',
              required: ['validAfter', 'validBefore', 'salt', 'signature'],
              properties: { validAfter: UINT256, validBefore: UINT256, salt: BYTES32, signature },
            },
          },
        },
      },
    },
    amount: uint128,
  },
  anyOf: [{ properties: { type: { not: { const: 'deposit' } } } }, { required: ['deposit'] }],
}

const validate = new Ajv2020({ validateSchema: false }).compile<Sent>(schema)

type Decoded = { readonly kind: 'payload'; readonly payload: ChannelPayload } | Malformed

/** Largest amount that the contract knows. */
const LARGEST = 2n ** 128n - 1n
/** Largest time or nonce that the token and Permit2 know. */
const LARGEST_NUMBER = 2n ** 256n - 1n

/** Reads the part of a payment that scheme batch-settlement defines, and the approval that came with a deposit. */
export function readChannelPayload(paid: PaymentPayload): Decoded {
  const sent: unknown = paid.payload
  if (!/^(0|[1-9][0-9]{0,38})$/.test(paid.accepted.amount))
    return malformed('/accepted/amount is no amount in atomic units')
  if (!validate(sent))
    return malformed(faultOf(validate.errors?.[0], '/payload', 'x402 v2 (scheme batch-settlement)'))
  const { type, channelConfig, voucher, amount } = sent
  const read = type === 'deposit' ? readDeposit(sent, paid) : undefined
  if (read?.kind === 'malformed') return read
  const deposit = read?.deposit
  const amounts = [voucher.maxClaimableAmount, deposit?.amount ?? '0', amount ?? '0'].map(BigInt)
  const numbers = deposit === undefined ? [] : numbersOf(deposit).map(BigInt)
  if (amounts.some((each) => each > LARGEST) || numbers.some((each) => each > LARGEST_NUMBER))
    return malformed('/payload has a number that the contract cannot read')
  return {
    kind: 'payload',
    payload: {
      type,
      config: spell(channelConfig),
      voucher: {
        channelId: lower(voucher.channelId),
        ceiling: BigInt(voucher.maxClaimableAmount),
        signature: lower(voucher.signature),
      },
      ...(deposit && { deposit }),
      ...(type === 'refund' && amount !== undefined ? { amount: BigInt(amount) } : {}),
    },
  }
}

type ReadDeposit = { readonly kind: 'deposit'; readonly deposit: DepositAuthorization } | Malformed

function readDeposit({ deposit }: Sent, paid: PaymentPayload): ReadDeposit {
  const { erc3009Authorization: transfer, permit2Authorization: permit } = deposit?.authorization ?? {}
  if (deposit === undefined) return NO_DEPOSIT
  const { amount } = deposit
  if (permit === undefined) {
    if (transfer === undefined) return NO_DEPOSIT
    const { validAfter, validBefore, salt, signature } = transfer
    return { kind: 'deposit', deposit: { amount, validAfter, validBefore, salt: lower(salt), signature } }
  }
  const read = readApproval(paid)
  if (read.kind === 'malformed') return read
  const { nonce, deadline, signature } = permit
  const approval = read.kind === 'approval' && { approval: read.approval }
  return {
    kind: 'deposit',
    deposit: { method: 'permit2', amount, nonce: BigInt(nonce).toString(), deadline, signature, ...approval },
  }
}

const NO_DEPOSIT = malformed('/payload/deposit has no authorization')

/** What must not be larger than a word. */
function numbersOf(deposit: DepositAuthorization): readonly string[] {
  return deposit.method === 'permit2'
    ? [deposit.nonce, deposit.deadline, deposit.approval?.deadline ?? '0']
    : [deposit.validAfter, deposit.validBefore]
}

/** One spelling, whatever the letter case. */
function spell(config: ChannelConfig): ChannelConfig {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config
  return {
    payer: toChecksum(payer),
    payerAuthorizer: toChecksum(payerAuthorizer),
    receiver: toChecksum(receiver),
    receiverAuthorizer: toChecksum(receiverAuthorizer),
    token: toChecksum(token),
    withdrawDelay,
    salt: lower(salt),
  }
}

function lower(hex: `0x${string}`): `0x${string}` {
  return `0x${hex.slice(2).toLowerCase()}`
}

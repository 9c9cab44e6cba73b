import { Ajv2020 } from 'ajv/dist/2020.js'
import { toChecksum, type Address } from '../../base/address.ts'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import type { Permit } from '../../chains/evm/permit2/permit.ts'
import { GAS_SPONSORING } from '../../base/permit2.ts'
import { faultOf, malformed, type Malformed, type PaymentPayload } from '../payload.ts'
import { ADDRESS, NONCE, UINT256 } from '../evm-fields.ts'
import { readApproval, type SentApproval } from '../gas-sponsoring.ts'

/** What a payment of scheme upto contains. */
export interface UptoPayload {
  readonly permit: Permit
  readonly spender: Address
  readonly signature: `0x${string}`
  /** The approval that the payer has signed too. */
  readonly approval: SentApproval | undefined
  /** The extension in which it came. */
  readonly extension: JsonObject | undefined
}

const payloadSchema = {
  type: 'object',
  required: ['signature', 'permit2Authorization'],
  properties: {
    signature: { type: 'string', pattern: '^0x([0-9a-fA-F]{2}){64,2048}$' },
    permit2Authorization: {
      type: 'object',
      required: ['permitted', 'from', 'spender', 'nonce', 'deadline', 'witness'],
      properties: {
        permitted: {
          type: 'object',
          required: ['token', 'amount'],
          properties: { token: ADDRESS, amount: UINT256 },
        },
        from: ADDRESS,
        spender: ADDRESS,
        nonce: NONCE,
        deadline: UINT256,
        witness: {
          type: 'object',
          required: ['to', 'facilitator', 'validAfter'],
          properties: { to: ADDRESS, facilitator: ADDRESS, validAfter: UINT256 },
        },
      },
    },
  },
}

interface SentPayload {
  readonly signature: `0x${string}`
  readonly permit2Authorization: {
    readonly permitted: { readonly token: Address; readonly amount: string }
    readonly from: Address
    readonly spender: Address
    readonly nonce: string
    readonly deadline: string
    readonly witness: { readonly to: Address; readonly facilitator: Address; readonly validAfter: string }
  }
}

const isPayload = new Ajv2020({ validateSchema: false }).compile<SentPayload>(payloadSchema)

type DecodedUpto = { readonly kind: 'payload'; readonly payload: UptoPayload } | Malformed

/** Reads the part of a payment that scheme upto defines, and its extension. */
export function readUpto(paid: PaymentPayload): DecodedUpto {
  const sent: unknown = paid.payload
  if (!isPayload(sent))
    return malformed(faultOf(isPayload.errors?.[0], '/payload', 'x402 v2 (scheme upto, Permit2)'))
  const { permitted, from, spender, nonce: number, deadline, witness } = sent.permit2Authorization
  const permit: Permit = {
    from: toChecksum(from),
    token: toChecksum(permitted.token),
    amount: permitted.amount,
    nonce: BigInt(number).toString(),
    deadline,
    to: toChecksum(witness.to),
    facilitator: toChecksum(witness.facilitator),
    validAfter: witness.validAfter,
  }
  const read = readApproval(paid)
  if (read.kind === 'malformed') return read
  const approval = read.kind === 'approval' ? read.approval : undefined
  const extension: unknown = paid.extensions?.[GAS_SPONSORING]
  const numbers = [permit.amount, permit.nonce, deadline, permit.validAfter, approval?.deadline ?? '0']
  if (numbers.some((each) => BigInt(each) > LARGEST)) return malformed(TOO_LARGE)
  return {
    kind: 'payload',
    payload: {
      permit,
      spender,
      signature: sent.signature,
      approval,
      extension: approval !== undefined && isJsonObject(extension) ? extension : undefined,
    },
  }
}

const LARGEST = 2n ** 256n - 1n
const TOO_LARGE = '/payload/permit2Authorization has a number that is no uint256'

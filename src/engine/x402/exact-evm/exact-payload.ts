import { Ajv2020 } from 'ajv/dist/2020.js'
import { toChecksum } from '../../base/address.ts'
import type { Authorization } from '../../chains/evm/eip3009/authorization.ts'
import { faultOf, malformed, type Malformed, type PaymentPayload } from '../payload.ts'
import { ADDRESS, BYTES32, UINT256 } from '../evm-fields.ts'

/** The `payload` of scheme exact on EVM with EIP-3009. */
export interface ExactPayload {
  readonly signature: `0x${string}`
  readonly authorization: Authorization
}

const schema = {
  type: 'object',
  required: ['signature', 'authorization'],
  properties: {
    signature: { type: 'string', pattern: '^0x([0-9a-fA-F]{2}){65,2048}$' },
    authorization: {
      type: 'object',
      required: ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'],
      properties: {
        from: ADDRESS,
        to: ADDRESS,
        value: UINT256,
        validAfter: UINT256,
        validBefore: UINT256,
        nonce: BYTES32,
      },
    },
  },
}

const validate = new Ajv2020({ validateSchema: false }).compile<ExactPayload>(schema)

type DecodedExact = { readonly kind: 'payload'; readonly payload: PaymentPayload<ExactPayload> } | Malformed

/** Reads the part of a payment that scheme exact defines. */
export function readExact({ payload, ...envelope }: PaymentPayload): DecodedExact {
  const signed: unknown = payload
  if (!validate(signed))
    return malformed(faultOf(validate.errors?.[0], '/payload', 'x402 v2 (scheme exact, EIP-3009)'))
  if (!fitsToken(signed)) return malformed(TOO_LARGE)
  return { kind: 'payload', payload: { ...envelope, payload: spell(signed) } }
}

const LARGEST = 2n ** 256n - 1n
const TOO_LARGE = '/payload/authorization has a number that is no uint256'

function fitsToken({ authorization: { value, validAfter, validBefore } }: ExactPayload): boolean {
  return [value, validAfter, validBefore].every((number) => BigInt(number) <= LARGEST)
}

/** A wrong letter case changes no address and no signature, and yet viem refuses to encode it. */
function spell({ signature, authorization }: ExactPayload): ExactPayload {
  const { from, to } = authorization
  return { signature, authorization: { ...authorization, from: toChecksum(from), to: toChecksum(to) } }
}

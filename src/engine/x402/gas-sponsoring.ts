import { Ajv2020 } from 'ajv/dist/2020.js'
import { sameAddress, type Address } from '../base/address.ts'
import type { Refusal } from '../base/errors.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'
import { GAS_SPONSORING, PERMIT2 } from '../base/permit2.ts'
import type { Approval } from '../chains/evm/permit2/permit.ts'
import { ADDRESS, UINT256 } from './evm-fields.ts'
import { faultOf, malformed, type Malformed, type PaymentPayload } from './payload.ts'

/** An approval of Permit2 that was sent with a payment, with what it is for, as its payer says. */
export interface SentApproval extends Approval {
  readonly from: string
  readonly asset: string
  readonly spender: string
  readonly amount: string
}

/** The extension of a 402 whose approvals are sent along. Every byte is sent with each 402: the specification has the schema. */
export const SPONSORING: JsonObject = {
  [GAS_SPONSORING]: {
    info: { description: 'An EIP-2612 approval of Permit2 is sent with the payment.', version: '1' },
    schema: {},
  },
}

const schema = {
  type: 'object',
  required: ['from', 'asset', 'spender', 'amount', 'deadline', 'signature'],
  properties: {
    from: ADDRESS,
    asset: ADDRESS,
    spender: ADDRESS,
    amount: UINT256,
    deadline: UINT256,
    signature: { type: 'string', pattern: '^0x[0-9a-fA-F]{128}(1b|1c|1B|1C|00|01)$' },
  },
}

const isApproval = new Ajv2020({ validateSchema: false }).compile<SentApproval>(schema)

type ReadApproval =
  { readonly kind: 'none' } | { readonly kind: 'approval'; readonly approval: SentApproval } | Malformed

/** Reads the approval of a payment. A client that copies the extension of the challenge adds one only where it needs it. */
export function readApproval({ extensions }: Pick<PaymentPayload, 'extensions'>): ReadApproval {
  const extension: unknown = extensions?.[GAS_SPONSORING]
  const info: unknown = isJsonObject(extension) ? extension['info'] : undefined
  if (!isJsonObject(info) || info['signature'] === undefined) return { kind: 'none' }
  const sent: unknown = info
  if (!isApproval(sent))
    return malformed(
      faultOf(isApproval.errors?.[0], `/extensions/${GAS_SPONSORING}/info`, 'x402 (EIP-2612 gas sponsoring)'),
    )
  const { from, asset, spender, amount, deadline, signature } = sent
  return { kind: 'approval', approval: { from, asset, spender, amount, deadline, signature } }
}

/** Whether an approval lets Permit2 move this amount of the token for the payer, and nothing else. */
export function checkApproval(
  { from, asset, spender, amount: approved }: SentApproval,
  { payer, token, amount }: { readonly payer: Address; readonly token: string; readonly amount: string },
): Refusal | undefined {
  const fits =
    sameAddress(from, payer) &&
    sameAddress(asset, token) &&
    sameAddress(spender, PERMIT2) &&
    approved === amount
  return fits
    ? undefined
    : {
        code: 'permit2_allowance_required',
        detail:
          'the approval in extensions is not one of Permit2 by the payer, for the token and the amount of the permit',
      }
}

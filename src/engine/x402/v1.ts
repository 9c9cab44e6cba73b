import { Ajv2020 } from 'ajv/dist/2020.js'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { findNetwork } from '../base/networks.ts'
import type { ErrorCode } from '../base/errors.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { faultOf, malformed, VERSION_2, type Decoded, type PaymentPayload } from './payload.ts'
import type { Requirements } from './requirements.ts'

/*
 * x402 version 1, which older clients speak: the same authorization in another envelope. A 402 offers it in its body, a
 * payment comes in X-PAYMENT, the receipt goes out in X-PAYMENT-RESPONSE. Payments are turned into version 2 here, and
 * nothing after that differs: an authorization that is sent in both versions is one payment.
 */

/** Request header of a payment. */
export const PAYMENT_V1 = 'x-payment'
/** Header of an answer to such a payment. */
export const RESPONSE_V1 = 'X-PAYMENT-RESPONSE'

/**
 * The name of a network, by its CAIP-2 id. Only those that every package of version 1 knows: one other name in an offer
 * makes the whole 402 unreadable to the rest. The Python package, for one, knows neither Polygon nor Solana.
 */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['eip155:8453', 'base'],
  ['eip155:84532', 'base-sepolia'],
  ['eip155:43114', 'avalanche'],
  ['eip155:43113', 'avalanche-fuji'],
])

const IDS: ReadonlyMap<string, string> = new Map([...NAMES].map(([id, name]) => [name, id]))

/** Whether version 1 can name this offer: it knows one scheme, `exact`. */
export function isOfferedInV1({ scheme, network }: Pick<Requirements, 'scheme' | 'network'>): boolean {
  return scheme === 'exact' && NAMES.has(network)
}

/** Whether a payment says that it is of version 1. */
export function isOfV1(payment: unknown): boolean {
  return isJsonObject(payment) && payment['x402Version'] === 1
}

/** What an offer says of the thing it is for: in version 2, once for all offers. */
export interface OfferedResource {
  readonly url: string
  readonly description: string
  readonly mimeType: string
  /** Absent for a tool. */
  readonly method?: string | undefined
}

/** The offers of version 1, in the same order. */
export function offersInV1(accepts: readonly Requirements[], resource: OfferedResource): JsonObject[] {
  return accepts.filter(isOfferedInV1).map((offer) => requirementsInV1(offer, resource))
}

function requirementsInV1(
  { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra }: Requirements,
  { url, description, mimeType, method }: OfferedResource,
): JsonObject {
  return {
    scheme,
    network: nameOf(network),
    maxAmountRequired: amount,
    resource: url,
    description,
    mimeType,
    payTo,
    maxTimeoutSeconds,
    asset,
    ...(method === undefined ? {} : { outputSchema: { input: { type: 'http', method } } }),
    extra: extra ?? {},
  }
}

function nameOf(network: string): string {
  return NAMES.get(network) ?? network
}

interface PayloadV1 {
  readonly x402Version: 1
  readonly scheme: string
  readonly network: string
  readonly payload: JsonObject
}

const validate = new Ajv2020({ validateSchema: false }).compile<PayloadV1>({
  type: 'object',
  required: ['x402Version', 'scheme', 'network', 'payload'],
  properties: {
    x402Version: { const: 1 },
    scheme: { type: 'string', maxLength: 64 },
    network: { type: 'string', maxLength: 64 },
    payload: { type: 'object' },
  },
})

/**
 * Reads a payment of version 1, which repeats scheme and network of its offer only. The rest of what it accepts is what
 * it signs; time and `extra` are not signed, so they are not compared with the offer.
 */
export function readV1(sent: unknown): Decoded {
  const version = isJsonObject(sent) ? sent['x402Version'] : undefined
  if (typeof version === 'number' && version !== 1)
    return {
      kind: 'malformed',
      code: 'invalid_x402_version',
      detail: `the payment is of x402 version ${version}, and X-PAYMENT is the header of version 1. ${VERSION_2}`,
    }
  if (!validate(sent)) return malformed(faultOf(validate.errors?.[0], '', 'x402 v1'))
  const { scheme, payload } = sent
  const network = (scheme === 'exact' ? IDS.get(sent.network) : undefined) ?? NOWHERE
  const { authorization } = payload
  const signed = isJsonObject(authorization) ? authorization : {}
  const accepted = {
    scheme,
    network,
    amount: textOf(signed['value']),
    asset: findNetwork(network)?.token.address ?? '',
    payTo: textOf(signed['to']),
  }
  return { kind: 'payload', payload: { x402Version: 2, accepted, payload } }
}

/** No scheme knows this network, so a payment on it is refused as one that was not offered. */
const NOWHERE = ''

/** Other values are for the scheme to refuse. */
function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** The receipt of a settled payment. */
export function settlementInV1({ transaction, network, payer }: Receipt): JsonObject {
  return { success: true, transaction, network: nameOf(network), payer }
}

/** The same of a payment that has definitely not settled. */
export function failureInV1({ network, payer }: PaymentRecord, errorReason: ErrorCode): JsonObject {
  return { success: false, errorReason, transaction: '', network: nameOf(network), payer }
}

/** Body of /verify and /settle of a facilitator that has version 1 only. */
export function facilitatorRequestInV1(
  { payload, resource }: PaymentPayload<object>,
  requirements: Requirements,
): object {
  const { scheme, network } = requirements
  const { url, description, mimeType } = { ...NOTHING, ...resource }
  return {
    x402Version: 1,
    paymentPayload: { x402Version: 1, scheme, network: nameOf(network), payload },
    paymentRequirements: requirementsInV1(requirements, { url, description, mimeType }),
  }
}

/** For a request that does not say what was bought: the members are required. */
const NOTHING = { url: 'about:blank', description: '', mimeType: 'application/json' }

/** Whether an entry of a facilitator’s list is this network in version 1. */
export function takesV1({ x402Version, scheme, network }: ListedKind, id: string): boolean {
  return x402Version === 1 && scheme === 'exact' && network === NAMES.get(id)
}

interface ListedKind {
  readonly x402Version: number
  readonly scheme: string
  readonly network: string
}

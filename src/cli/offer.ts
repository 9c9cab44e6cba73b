import {
  findNetwork,
  formatPrice,
  isAddress,
  isJsonObject,
  toMicros,
  type JsonObject,
  type Network,
} from '../engine/index.ts'

/** One offer of a 402 that this wallet can sign: x402 v2, scheme exact, on a network of the table. */
export interface SignableOffer {
  readonly network: Network
  readonly amount: bigint
  readonly payTo: `0x${string}`
  readonly timeoutSeconds: number
  /** The entry of `accepts`, echoed unchanged. */
  readonly accepted: JsonObject
  readonly resource: JsonObject | undefined
  readonly extensions: JsonObject | undefined
}

/** Reads a PAYMENT-REQUIRED header and takes the first offer it can sign; undefined when there is none. */
export function readOffer(header: string | null): SignableOffer | undefined {
  const required = header === null ? undefined : parse(header)
  if (!isJsonObject(required) || required['x402Version'] !== 2 || !Array.isArray(required['accepts']))
    return undefined
  for (const accepted of required['accepts']) {
    const offer = isJsonObject(accepted) ? signable(accepted) : undefined
    if (offer === undefined) continue
    const { resource, extensions } = required
    return {
      ...offer,
      resource: isObject(resource) ? resource : undefined,
      extensions: isObject(extensions) ? extensions : undefined,
    }
  }
  return undefined
}

function signable(accepted: JsonObject): Omit<SignableOffer, 'resource' | 'extensions'> | undefined {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds } = accepted
  const known = typeof network === 'string' ? findNetwork(network) : undefined
  if (
    scheme !== 'exact' ||
    known === undefined ||
    typeof amount !== 'string' ||
    !/^[1-9]\d{0,20}$/.test(amount)
  )
    return undefined
  if (typeof payTo !== 'string' || !isAddress(payTo) || typeof maxTimeoutSeconds !== 'number')
    return undefined
  // A token we do not know could be worth anything.
  if (typeof asset !== 'string' || asset.toLowerCase() !== known.token.address.toLowerCase()) return undefined
  return { network: known, amount: BigInt(amount), payTo, timeoutSeconds: maxTimeoutSeconds, accepted }
}

/** The offer in USD: every token of the table is a dollar of six decimals. */
export function offerPrice({ amount }: SignableOffer): string {
  return formatPrice(toMicros(amount))
}

function isObject(value: unknown): value is JsonObject {
  return isJsonObject(value)
}

function parse(header: string): unknown {
  try {
    return JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
  } catch {
    return undefined
  }
}

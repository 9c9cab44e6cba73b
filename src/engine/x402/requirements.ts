import type { Operation } from '../catalog/catalog.ts'
import type { Json } from '../base/json.ts'
import { formatPrice, PRICE_DECIMALS, type Micros } from '../base/money.ts'
import type { Network } from '../base/networks.ts'

/** One entry of `accepts`, and its echo under `accepted` (x402 v2 core §5.1.2). */
export interface Requirements {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra?: Readonly<Record<string, Json>> | null
}

/** A network on which payments are accepted. */
export interface AcceptedNetwork {
  readonly network: Network
  /** EIP-55. */
  readonly payTo: string
  /** Seconds a signed payment is valid. */
  readonly timeoutSeconds: number
}

/** The offer of `price` in one network’s token. */
export function requirementsOf(
  accepted: AcceptedNetwork,
  price: Micros,
  settle: Operation['settle'],
): Requirements {
  return offerOf(accepted, toAtomic(price, accepted.network.token.decimals).toString(), settle)
}

/**
 * The amount of a token with `decimals` places that equals `price`. Throws RangeError when the token has too few
 * decimals, because rounding would change the charge.
 */
export function toAtomic(price: Micros, decimals: number): bigint {
  if (decimals >= PRICE_DECIMALS) return price * 10n ** BigInt(decimals - PRICE_DECIMALS)
  const step = 10n ** BigInt(PRICE_DECIMALS - decimals)
  if (price % step !== 0n)
    throw new RangeError(`${formatPrice(price)} USD has no exact value in ${decimals} decimals`)
  return price / step
}

/** The offer of an amount in atomic units. The default flow is omitted, as in the official SDK. */
export function offerOf(
  { network, payTo, timeoutSeconds }: AcceptedNetwork,
  amount: string,
  settle: Operation['settle'],
): Requirements {
  const { token } = network
  return {
    scheme: 'exact',
    network: network.id,
    amount,
    asset: token.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: {
      name: token.name,
      version: token.version,
      ...(settle === 'upfront' ? { paymentFlow: 'upfront' } : {}),
    },
  }
}

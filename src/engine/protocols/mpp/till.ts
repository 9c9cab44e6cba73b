import type { Caller } from '../../chains/evm/rpc.ts'
import type { Payments } from '../../catalog/catalog.ts'
import { isLoopback } from '../../origin.ts'
import type { Protocol } from '../protocol.ts'
import { realmOf } from './challenge.ts'
import { createMpp } from './mpp.ts'
import { Validator } from './validator.ts'

export interface MppTillSettings {
  readonly baseUrl: string
  readonly recipient: string | undefined
  /** The first binds challenges, all are known. */
  readonly secretKeys: readonly string[]
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly caller: Caller
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly random: (bytes: number) => Uint8Array
  /** Told of faults whose payment is answered all the same. */
  readonly report: (fault: unknown) => void
}

/** Where money is taken by MPP, for every revision of the catalog: a new one keeps the thread of the old. */
export interface MppTill {
  /** Undefined while something is missing. */
  of(mpp: NonNullable<Payments['mpp']>): Protocol | undefined
  /** Variables without which nothing can be taken. */
  missing(mpp: NonNullable<Payments['mpp']>): readonly string[]
  close(): Promise<void>
}

/** Nothing is asked of the network, and nothing heavy is loaded, before the first credential. */
export function openMppTill(settings: MppTillSettings): MppTill {
  const { baseUrl, recipient, secretKeys, rpcUrls, caller, now, sleep, random, report } = settings
  const [secretKey, ...older] = secretKeys
  const validator = new Validator({ realm: realmOf(baseUrl), secretKeys, rpcUrls, report })
  return {
    of: ({ chain, currency }) => {
      const rpcUrl = rpcUrls[chain]
      if (recipient === undefined || secretKey === undefined || rpcUrl === undefined || !isPrivate(baseUrl))
        return undefined
      return createMpp({
        baseUrl,
        chainId: chain,
        currency,
        recipient,
        secretKeys: [secretKey, ...older],
        rpcUrl,
        validator,
        caller,
        now,
        sleep,
        random,
      })
    },
    missing: ({ chain }) => [
      ...(recipient === undefined ? ['MPP_RECIPIENT'] : []),
      ...(secretKey === undefined ? ['MPP_SECRET_KEY'] : []),
      ...(rpcUrls[chain] === undefined ? [`RPC_URL_${chain}`] : []),
      ...(isPrivate(baseUrl) ? [] : ['BASE_URL with https']),
    ],
    close: () => validator.close(),
  }
}

/** Payment authentication scheme, “Transport Security”: no challenge goes over a wire others can read. */
function isPrivate(baseUrl: string): boolean {
  return baseUrl.startsWith('https://') || isLoopback(baseUrl)
}

import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createTills,
  createX402,
  type Catalog,
  type Ledger,
  type Protocol,
  type ServiceWorld,
  type Tills,
} from '../engine/index.ts'

/** The machine, as the engine sees it. */
export const world: ServiceWorld & { readonly fetcher: typeof fetch } = {
  fetcher: fetch,
  now: () => Date.now(),
  random: (bytes) => randomBytes(bytes),
  sleep: async (ms) => {
    await delay(ms)
  },
}

export interface PaymentMeans {
  readonly payTo: string
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  readonly ledger: Ledger
  readonly owner: string
}

/** Tills of this process: kept over revisions, so that signers keep their place in the queue. */
export function openTills(means: PaymentMeans): Tills {
  const { fetcher, now, sleep } = world
  return createTills({ ...means, fetcher, now, sleep })
}

/** The ways a catalog can be paid with these tills. */
export function protocolsOf(catalog: Catalog, tills: Tills, baseUrl: string): Protocol[] {
  const { x402 } = catalog.payments
  if (x402 === undefined) return []
  const open = tills.of(x402)
  if (open.length === 0) return []
  const reachable = tills.reachable(x402)
  return [createX402({ service: catalog.service, baseUrl, tills: open, reachable, random: world.random })]
}

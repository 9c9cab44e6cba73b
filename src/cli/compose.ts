import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  openX402Networks,
  createX402,
  openMppNetworks,
  type Caller,
  type Catalog,
  type FacilitatorAccess,
  type Ledger,
  type MppNetworks,
  type Protocol,
  type ServiceWorld,
  type X402Networks,
} from '../engine/index.ts'

/** The machine, as the engine sees it. */
export const world: ServiceWorld & { readonly fetcher: typeof fetch; readonly caller: Caller } = {
  fetcher: fetch,
  caller: async (url, request) => {
    // A third of the work of the fetch that comes with Node.js, where every payment asks a node five times.
    const undici = await import('undici')
    return (await undici.request(url, request)).body
  },
  now: () => Date.now(),
  random: (bytes) => randomBytes(bytes),
  sleep: async (ms) => {
    await delay(ms)
  },
}

export interface SettlementConfig {
  readonly payTo: string
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  readonly mppRecipient: string | undefined
  /** The first binds challenges, all are known. */
  readonly mppSecretKeys: readonly string[]
  readonly facilitators: readonly FacilitatorAccess[]
  readonly ledger: Ledger
  readonly owner: string
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** The networks of this process: kept over revisions, so that signers keep their place in the queue. */
export function openNetworks(config: Omit<SettlementConfig, 'mppRecipient' | 'mppSecretKeys'>): X402Networks {
  const { fetcher, caller, now, sleep } = world
  return openX402Networks({ ...config, fetcher, caller, now, sleep })
}

export type MppConfig = Pick<SettlementConfig, 'rpcUrls' | 'mppRecipient' | 'mppSecretKeys'>

/** Where MPP pays into, kept over revisions too: its thread is heavy. */
export function openMpp(
  { rpcUrls, mppRecipient, mppSecretKeys }: MppConfig,
  baseUrl: string,
  report: (fault: unknown) => void,
): MppNetworks {
  const { caller, now, sleep, random } = world
  const [recipient, secretKeys] = [mppRecipient, mppSecretKeys]
  return openMppNetworks({ baseUrl, recipient, secretKeys, rpcUrls, caller, now, sleep, random, report })
}

export interface AllNetworks {
  readonly x402: X402Networks
  readonly mpp: MppNetworks
}

/** The ways a catalog can be paid with these tills. */
export function protocolsOf(catalog: Catalog, tills: AllNetworks, baseUrl: string): Protocol[] {
  const { x402, mpp } = catalog.payments
  const tempo = mpp === undefined ? undefined : tills.mpp.of(mpp)
  return [
    ...(x402 === undefined ? [] : evmOf(catalog, x402, tills.x402, baseUrl)),
    ...(tempo === undefined ? [] : [tempo]),
  ]
}

function evmOf(
  { service }: Catalog,
  x402: NonNullable<Catalog['payments']['x402']>,
  tills: X402Networks,
  baseUrl: string,
): Protocol[] {
  if (tills.closed(x402).length === x402.networks.length) return []
  // Empty while the networks are withdrawn: they may come back, and what was paid on them is still answered.
  const offered = tills.of(x402)
  return [createX402({ service, baseUrl, offered, reachable: tills.reachable(x402), random: world.random })]
}

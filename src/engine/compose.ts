import { createMemoryCache, type CacheStore } from './cache/cache.ts'
import { openRedisCache } from './cache/redis.ts'
import type { Catalog } from './catalog/catalog.ts'
import { CatalogError, hasErrors } from './catalog/issue.ts'
import { compileText, loadCatalog, readerIn, type Loaded } from './catalog/load.ts'
import { documentNames } from './documents/all.ts'
import type { Ledger } from './ledger/ledger.ts'
import { openLmdbLedger } from './ledger/lmdb.ts'
import { openRedisLedger } from './ledger/redis.ts'
import { openMppNetworks, type MppNetworks } from './protocols/mpp/mpp.ts'
import type { Protocol, SettingNames } from './protocols/protocol.ts'
import { checkHeaderBudget } from './protocols/x402/challenge.ts'
import type { FacilitatorAccess } from './protocols/x402/facilitator-client.ts'
import { openX402Networks, type X402Networks } from './protocols/x402/networks.ts'
import { createX402 } from './protocols/x402/x402.ts'
import { readRedisAddress } from './redis-address.ts'
import { world, type Runtime } from './runtime.ts'

/** A catalog to be served: its file, or its text, whose files are read from the working directory. */
export type CatalogPlace = string | { readonly text: string }

/**
 * Loads a catalog to be served, and also judges what depends on where it is served: the size of its headers. `noted` is
 * called with every file that is read. Throws `CatalogError`.
 */
export function loadServed(
  place: CatalogPlace,
  handlers: readonly string[],
  baseUrl: string,
  noted?: (path: string) => void,
): Loaded {
  const known = { handlers, documents: documentNames }
  const file = typeof place === 'string' ? place : 'catalog.yaml'
  const loaded =
    typeof place === 'string'
      ? loadCatalog(file, known, noted)
      : compileText(file, place.text, { ...known, read: readerIn('.', noted) })
  const { catalog, text, at } = loaded
  const issues = checkHeaderBudget(catalog, { baseUrl, at })
  if (hasErrors(issues)) throw new CatalogError(file, text, [...loaded.warnings, ...issues])
  return { ...loaded, warnings: [...loaded.warnings, ...issues] }
}

export interface LedgerPlace {
  /** Folder of an LMDB store, unless there is a Redis. */
  readonly directory: string
  readonly redisUrl?: string | undefined
  /** The operator answers for Redis settings that cannot be read. */
  readonly ledgerUnsafe?: boolean
  /** Replicas of Redis that must have a change before it counts as stored. */
  readonly ledgerReplicas?: number
}

interface OpenedLedger {
  readonly ledger: Ledger
  /** For people: what it is and, of a Redis, where. */
  readonly title: string
}

/** Throws `LedgerError`. */
export async function openLedger({
  directory,
  redisUrl,
  ledgerUnsafe = false,
  ledgerReplicas = 0,
}: LedgerPlace): Promise<OpenedLedger> {
  if (redisUrl === undefined) {
    const ledger = await openLmdbLedger(directory)
    return { ledger, title: ledger.name }
  }
  const settings = ledgerUnsafe ? 'unchecked' : 'checked'
  const ledger = await openRedisLedger({ url: redisUrl, settings, replicas: ledgerReplicas })
  return { ledger, title: `${ledger.name} at ${new URL(redisUrl).host}` }
}

interface OpenedCache {
  readonly store: CacheStore
  /** For people: what it is and, of a Redis, where. */
  readonly title: string
}

/**
 * In this process, or in a Redis; `setting` is where its URL was set. A fault is a mistake in the URL; a Redis that cannot
 * be reached is none, for an answer can be fetched without it.
 */
export async function openCache(
  url: string | undefined,
  setting: string,
  report: (line: string) => void,
): Promise<OpenedCache | { readonly fault: string }> {
  if (url === undefined) return { store: createMemoryCache(), title: 'in-process' }
  const address = readRedisAddress(url, setting)
  if ('fault' in address) return address
  const store = await openRedisCache({ address, random: world.random, report })
  return { store, title: `${store.name} at ${address.place}` }
}

/** Who is paid, and what it takes to settle. */
export interface PaymentConfig {
  /** Empty when it is not set. */
  readonly payTo: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  /** Settle where there is no signer; in order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly mppRecipient: string | undefined
  /** The first signs challenges, all are known. */
  readonly mppSecretKeys: readonly string[]
}

export interface NetworkDeps {
  readonly config: PaymentConfig
  readonly names: SettingNames
  readonly baseUrl: string
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly runtime: Runtime
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
  /** Takes what went wrong without an answer being lost. */
  readonly report: (fault: unknown) => void
}

/** Where payments are taken, kept over revisions: signers keep their place in the queue, and MPP its thread. */
export interface AllNetworks {
  readonly x402: X402Networks
  readonly mpp: MppNetworks
}

export function openNetworks(deps: NetworkDeps): AllNetworks {
  const { config, names, baseUrl, runtime, ledger, owner, log, report } = deps
  const { rpcUrls, mppRecipient: recipient, mppSecretKeys: secretKeys } = config
  return {
    x402: openX402Networks({ ...runtime, ...config, names, ledger, owner, report: log }),
    mpp: openMppNetworks({ ...runtime, names, baseUrl, recipient, secretKeys, rpcUrls, report }),
  }
}

/** The ways in which a catalog can be paid on these networks. */
export function protocolsOf(
  catalog: Catalog,
  networks: AllNetworks,
  baseUrl: string,
  { random }: Pick<Runtime, 'random'>,
): Protocol[] {
  const { service, payments } = catalog
  const { x402, mpp } = payments
  const tempo = mpp === undefined ? undefined : networks.mpp.of(mpp)
  const evm =
    x402 === undefined || networks.x402.closed(x402).length === x402.networks.length
      ? undefined
      : createX402({
          service,
          baseUrl,
          // Empty while the networks are withdrawn: they may come back, and what was paid on them is still answered.
          offered: networks.x402.of(x402),
          reachable: networks.x402.reachable(x402),
          random,
        })
  return [evm, tempo].filter((protocol) => protocol !== undefined)
}
